"""`linadd inspect MODEL`: what a model file holds: options, data, history, certificate, curves, sizes."""

import os

from linadd.bounds import bound
from linadd.cli.arguments import Drop, Features, ModelFile, verb
from linadd.cli.terminal import Result, format_bytes, gap_of

__all__ = ["inspect"]

SHOWN_FEATURES = 10
SHOWN_EPOCHS = 10


@verb
def inspect(terminal, model: ModelFile, features: Features = None, drop: Drop = None):
    """Show what a model file holds.

    Options, fingerprint of the data, history, certificate, ranges and spans of the curves (--features and --drop choose
    among them), sizes.
    """
    from linadd.cli.scoring import chosen_features  # these load numba
    from linadd.model_file import load_model_file, model_digest
    from linadd.models import load_model

    tensors, header = load_model_file(model)
    record = {
        "model": model,
        "bytes": os.path.getsize(model),
        "digest": model_digest(tensors, header),
        "tensors": {name: {"dtype": array.dtype.name, "shape": list(array.shape)} for name, array in tensors.items()},
        **header,
    }
    loaded = load_model(model)
    record |= {"n_features": loaded.n_features, "n_outputs": loaded.n_outputs}
    view = VIEWS.get(header["class"], show_kernel_classifier)
    return view(loaded, record, chosen_features(loaded, model, features, drop))


def show_additive(loaded, record, chosen):
    """The Result of an additive model: what is in its file, and the chosen curves."""
    features = features_of(loaded)
    record |= {"range_policy": loaded.range_policy, "n_basis": loaded.encoder.n_basis}
    record["features"] = [features[j] for j in chosen]
    return Result(record, as_text(record))


def show_kernel_classifier(loaded, record, chosen):
    """The Result of a kernel classifier: what is in its file, and the ranges of the chosen features."""
    names, ranges = loaded.feature_names or range(1, loaded.n_features + 1), loaded.ranges.tolist()
    ranges = [(names[j], ranges[j]) for j in chosen]
    record |= {
        "summary": loaded.summary,
        "n_basis": loaded.summary["n_basis"],
        "features": [{"feature": name, "lower": lower, "upper": upper} for name, (lower, upper) in ranges],
    }
    summary = record["summary"]
    result = [] if summary["objective"] is None else [f"objective {summary['objective']:.8g}"]
    result += [f"{record['n_basis']:,} basis vectors"]
    result += [] if summary.get("converged", True) else ["stopped before it converged"]
    lines = [
        *head_lines(record),
        f"estimator  {record['class']}",
        f"features   {record['n_features']:,}, {record['n_outputs']} outputs",
        f"parameters {', '.join(f'{name} {value}' for name, value in record['options'].items())}",
        f"result     {', '.join(result)}",
    ]
    if "fingerprint" in summary:
        data = summary["fingerprint"]
        lines.append(f"data       {summary['n_rows']:,} rows of {data.get('path', 'arrays')}, digest {data['digest']}")
    return Result(record, "\n".join(lines))


VIEWS = {"additive": show_additive}  # by class in the model file; the others are kernel classifiers


def head_lines(record):
    """What a text begins with: file and classes."""
    classes = record["classes"]
    listed = ", ".join(map(str, classes[:10])) + (f" and {len(classes) - 10} more" if len(classes) > 10 else "")
    version = record.get("linadd_version", "of an older version")
    return [
        f"{record['model']}: {format_bytes(record['bytes'])}, linadd {version}, digest {record['digest']}",
        f"classes    {len(classes)}: {listed}",
    ]


def features_of(model):
    """Name, range and span of each feature's curve, null where it is not clamped; in the order of the columns."""
    from linadd.shapes import curve_spans

    names = model.feature_names or range(1, model.n_features + 1)
    columns = zip(names, model.encoder.ranges.tolist(), curve_spans(model).tolist(), strict=True)
    return [
        {"feature": name, "lower": lower, "upper": upper, "span": span}
        if span == span
        else {"feature": name, "lower": None, "upper": None, "span": None}
        for name, (lower, upper), span in columns
    ]


def as_text(record):
    """The record for people: the widest curves and the last epochs only."""
    summary, options, encoder = record["summary"], record["options"], record["encoder"]
    settings = ", ".join(f"{name} {value}" for name, value in encoder["options"].items())
    data = record["fingerprint"]
    result = ["no certificate" if summary["gap"] is None else f"relative duality gap {bound(summary['gap'])}"]
    result += [f"{name} {summary[name]}" for name in ("objective", "passes", "reads") if summary.get(name) is not None]
    result += [] if summary["converged"] else ["stopped before the tolerance"]
    cost = "" if options["C"] is None else f"C {options['C']:g}, "
    lines = [
        *head_lines(record),
        f"features   {record['n_features']:,}, {record['n_basis']} coefficients each, {record['n_outputs']} outputs",
        f"encoder    {encoder['name']} ({settings})",
        *([f"range      {record['range_policy']}"] if record["range_policy"] != "clamp" else []),
        f"training   loss {record['loss']}, {cost}solver {summary['solver']}, scale {options['scale']}, "
        f"intercept {options['intercept']}, seed {options['seed']}",
        f"result     {', '.join(result)}",
        data_line(summary["n_rows"], data),
    ]
    return "\n".join([*lines, *feature_lines(record["features"]), *history_lines(record["history"])])


def data_line(n_rows, data):
    """What the model was trained on; of a model of LIBLINEAR that is its file."""
    path = data.get("path", "arrays in memory")
    return f"data       {path}" if n_rows is None else f"data       {n_rows:,} rows of {path}, digest {data['digest']}"


def feature_lines(features):
    """The table of the curves with the widest spans."""
    ranged = sorted((each for each in features if each["span"] is not None), key=lambda each: -each["span"])
    lines = ["", f"{'widest curves':<32} {'from':>12} {'to':>12} {'span':>10}"] if ranged else []
    for each in ranged[:SHOWN_FEATURES]:
        lines.append(f"{each['feature']!s:<32} {each['lower']:>12.6g} {each['upper']:>12.6g} {each['span']:>10.4g}")
    return lines


def history_lines(history):
    """The table of the last epochs; an estimated gap is marked by ~."""
    lines = ["", f"{'pass':>4} {'objective':>14} {'gap':>10}"] if history else []
    for record in history[-SHOWN_EPOCHS:]:
        gap, is_estimated = gap_of(record)
        text = "-" if gap is None else f"{'~' if is_estimated else ''}{bound(gap)}"
        lines.append(f"{record['epoch']:>4} {record['objective']:>14.8g} {text:>10}")
    return lines
