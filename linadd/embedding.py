"""The embedding of the training rows: scale and centre, labels and costs, and the rows themselves where they fit."""

import logging
from contextlib import closing
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from linadd._jit import stream_threads
from linadd.census import Census
from linadd.chunks import row_groups
from linadd.encoders import make_encoder
from linadd.encoders.base import Encoder
from linadd.encoders.centring import Centre, CodeMoments, located
from linadd.encoders.density import Density, DensityCounter
from linadd.encoders.rows import Rows, empty_rows, locate, positions_dtype
from linadd.errors import ConfigError, DataError

log = logging.getLogger(__name__)

# C times weights, up to which all solvers were seen to end with finite coefficients and a true gap.
LARGEST_COST = 1e15


def class_factors(census, class_weight):
    """Factor of C of each class, float64 (n_classes,), from None, "balanced" or a dict by label."""
    classes = census.classes.tolist()
    if class_weight is None:
        return np.ones(len(classes))
    if class_weight == "balanced":
        if census.class_counts is None:
            raise ConfigError("class_weight: 'balanced' needs the counts of a census. Give census=, or the factors.")
        return census.n_rows / (len(classes) * census.class_counts)
    # By their text: a command line, and the options of a model file, cannot tell the label 1 from "1".
    factors = {str(label): factor for label, factor in class_weight.items()}
    unknown = sorted(factors.keys() - map(str, classes))
    if unknown:
        raise ConfigError(f"class_weight: {unknown[0]!r} is not among the classes {', '.join(map(str, classes))}.")
    return np.array([factors.get(str(label), 1.0) for label in classes], np.float64)


class Embedded(NamedTuple):
    """Training rows as the solvers need them: what the two reads before training have found."""

    census: Census
    encoder: Encoder
    centre: Centre
    targets: np.ndarray  # int32 (n_rows,): place in census.classes
    costs: np.ndarray  # float32 (n_rows,): class weight times sample weight
    folds: np.ndarray  # int16 (n_rows,): 0
    positions: np.ndarray | Rows | None  # all rows as positions or codes, where they fit; Rows if sparse
    density: Density


def fit_encoder(source, options, plan, census):
    """The encoder that the options name, fitted to a census; with codes where the plan keeps rows as such."""
    encoder = make_encoder(options.encoder, **options.encoder_options()).fit(census, options.scale)
    if plan.precision != "exact":
        encoder.use_codes(census, source.dtype, plan.precision)
    elif options.precision != "exact":
        log.info(
            "precision: the rows do not fit the memory limit as %s codes; every pass reads them.", options.precision
        )
    return encoder


def embed(source, options, plan, memory, progress, census):
    """One read of the source, after that of its census: scale and centre, and the rows themselves if they fit."""
    encoder = fit_encoder(source, options, plan, census)
    return embed_together(source, options, [encoder], plan, memory, progress, census)[0]


def first_alike(encoders):
    """Index of the first encoder that places rows like each one: itself where none before does."""
    return [
        next(k for k, other in enumerate(encoders) if other is encoder or encoder.places_like(other))
        for encoder in encoders
    ]


def embed_together(source, options, encoders, plan, memory, progress, census):
    """What `embed` finds for each of several encoders, in one read; they share labels, costs, folds, equal positions.

    Parameters
    ----------
    source : Source
        Labelled rows.
    options : Options
        All but those of the encoders.
    encoders : list of Encoder
        Of `fit_encoder`.
    plan : Plan
        Says whether the positions of all encoders fit.
    memory : Memory
        Account of what is allocated.
    progress : Progress
        Told of the rows read.
    census : Census
        Of the source.

    Returns
    -------
    list of Embedded
        Where positions are shared, the same array.

    Raises
    ------
    DataError
        On costs or norms that the solvers cannot bear.
    """
    first, is_exact = first_alike(encoders), plan.precision == "exact"
    factors = class_factors(census, options.class_weight)
    targets = memory.zeros("labels", source.n_rows, np.int32)
    costs = memory.zeros("costs", source.n_rows, np.float32)
    folds = memory.zeros("folds", source.n_rows, np.int16)
    n_entries, kept = census.n_filled if plan.is_sparse else None, {}
    for k in set(first):
        dtype = positions_dtype(encoders[k]) if is_exact else np.dtype(plan.precision)
        kept[k] = empty_rows(encoders[k], source.n_rows, n_entries, dtype) if plan.fits else None
        memory.take(plan.block_bytes(source.n_features))
    moments = [CodeMoments(encoder, plan.is_sparse) for encoder in encoders]
    counters = [DensityCounter(encoder, census) for encoder in encoders]

    def labelled():
        """The chunks, whose targets and costs are noted as they pass."""
        for chunk in source.chunks():
            rows = slice(chunk.first_row, chunk.first_row + chunk.n_rows)
            if source.has_labels:
                targets[rows] = np.searchsorted(census.classes, chunk.y)
            with np.errstate(over="ignore"):  # refused below
                costs[rows] = factors[targets[rows]] * chunk.weights()
            check_costs(costs[rows], options.C, chunk)
            yield chunk
            progress.read("centre", rows.stop, source.n_rows)

    def parts_of(pieces):
        """The pieces of a group of rows, as positions, for each encoder; kept where all are."""
        found = {k: located(encoders[k], pieces, rows if is_exact else None) for k, rows in kept.items()}
        if not is_exact:
            for (k, rows), (first_row, X, _) in product(kept.items(), pieces):
                locate(encoders[k], X, rows.positions[first_row : first_row + len(X)])
        return [found[k] for k in first]

    def located_sums(pieces):
        """Locate a group of rows; the sums of their codes, and their counts, for each encoder."""
        parts = zip(moments, counters, parts_of(pieces), strict=True)
        return [(moment.group(own), counter.group(own)) for moment, counter, own in parts]

    with closing(labelled()) as chunks:
        groups = row_groups(chunks, plan.is_sparse)
        if plan.is_sparse:  # one thread: a group fills few of the sums, which are too many to be made for each
            for pieces in groups:
                for moment, counter, own in zip(moments, counters, parts_of(pieces), strict=True):
                    moment.run(own, moment.codes, moment.sums)
                    counter.run(own, counter.weights, counter.places)
        else:
            for sums in stream_threads(located_sums, ((pieces,) for pieces in groups), options.n_jobs):
                for moment, counter, own in zip(moments, counters, sums, strict=True):
                    moment.add(*own[0])
                    counter.add(*own[1])
    rows = {k: each if plan.is_sparse or each is None else each.positions for k, each in kept.items()}
    found = []
    for encoder, moment, counter, k in zip(encoders, moments, counters, first, strict=True):
        with np.errstate(over="ignore", invalid="ignore"):
            centre = moment.centre(options.center, options.scale == "unit")
            density = counter.finish(moment.mean_code)
        if not np.isfinite(centre.mean_norm):
            refuse_norms(census, options.scale)
        found.append(Embedded(census, encoder, centre, targets, costs, folds, rows[k], density))
    return found


def check_costs(costs, C, chunk):
    """Raise DataError where C times class weight times sample weight passes what the solvers can bear."""
    row = int(np.argmax(costs))
    largest = float(costs[row]) * C
    if largest > LARGEST_COST:
        raise DataError(
            f"C times the weights of class and row is {largest:.3g}, above {LARGEST_COST:g}. Lower C, or divide all "
            "weights by a common factor.",
            source=chunk.origin, row=chunk.row_number(row),
        )  # fmt: skip


def refuse_norms(census, scale):
    """Raise DataError for rows whose squared norm is beyond float32: the solvers would leave them alone in silence."""
    size = np.maximum(-census.minimum, census.maximum)
    j = int(np.argmax(size))
    raise DataError(
        f"values up to {size[j]:g} under scale={scale!r} make squared norms that pass the range of float32. Rescale "
        "it, or use scale='unit'.",
        source=census.origin, column=census.column_name(j),
    )  # fmt: skip


def lean(embedded):
    """The embedding without the rows that it was made from."""
    census = replace(embedded.census, sample=np.zeros((0, 0)), sample_weight=np.zeros(0))
    return embedded._replace(census=census, targets=None, costs=None, folds=None, positions=None)
