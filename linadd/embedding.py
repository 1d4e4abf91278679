"""The embedding of the training rows: scale and centre, labels and costs, and the rows themselves where they fit."""

import logging
from contextlib import closing
from dataclasses import replace
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


def embed(source, options, plan, memory, progress, census):
    """One read of the source, after that of its census: scale and centre, and the rows themselves if they fit."""
    encoder = make_encoder(options.encoder, **options.encoder_options()).fit(census, options.scale)
    dtype = positions_dtype(encoder)
    if plan.precision != "exact":
        encoder.use_codes(census, source.dtype, plan.precision)
        dtype = np.dtype(plan.precision)
    elif options.precision != "exact":
        log.info(
            "precision: the rows do not fit the memory limit as %s codes; every pass reads them.", options.precision
        )
    factors = class_factors(census, options.class_weight)
    targets = memory.zeros("labels", source.n_rows, np.int32)
    costs = memory.zeros("costs", source.n_rows, np.float32)
    folds = memory.zeros("folds", source.n_rows, np.int16)
    n_entries = census.n_filled if plan.is_sparse else None
    kept = empty_rows(encoder, source.n_rows, n_entries, dtype) if plan.fits else None
    memory.take(plan.block_bytes(source.n_features))
    moments, density = CodeMoments(encoder, plan.is_sparse), DensityCounter(encoder, census)
    is_exact = plan.precision == "exact"

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

    def located_sums(pieces):
        """Locate a group of rows; returns the sums of their codes, and their counts."""
        parts = located(encoder, pieces, kept if is_exact else None)
        if not is_exact:
            for first_row, X, _ in pieces:
                locate(encoder, X, kept.positions[first_row : first_row + len(X)])
        return moments.group(parts), density.group(parts)

    with closing(labelled()) as chunks:
        groups = row_groups(chunks, plan.is_sparse)
        if plan.is_sparse:  # one thread: a group fills few of the sums, which are too many to be made for each
            for pieces in groups:
                parts = located(encoder, pieces, kept)
                moments.run(parts, moments.codes, moments.sums)
                density.run(parts, density.weights, density.places)
        else:
            for sums, counts in stream_threads(located_sums, ((pieces,) for pieces in groups), options.n_jobs):
                moments.add(*sums)
                density.add(*counts)
    with np.errstate(over="ignore", invalid="ignore"):
        centre = moments.centre(options.center, options.scale == "unit")
        counted = density.finish(moments.mean_code)
    if not np.isfinite(centre.mean_norm):
        refuse_norms(census, options.scale)
    positions = kept if plan.is_sparse or kept is None else kept.positions
    return Embedded(census, encoder, centre, targets, costs, folds, positions, counted)


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
