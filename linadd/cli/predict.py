"""`linadd predict MODEL FILE -o OUT`: labels, scores or probabilities of all rows, in file order, as they stream by."""

import time
from typing import Annotated

import typer

from linadd.atomic import atomic_path, check_writable
from linadd.cli.arguments import (
    DataFile,
    Drop,
    Features,
    IndexBase,
    ModelFile,
    RangePolicy,
    Table,
    Where,
    refuse_same_file,
    verb,
)
from linadd.cli.terminal import Result, peak_memory_bytes
from linadd.errors import ConfigError

__all__ = ["predict"]

OUTPUTS = ("label", "decision", "proba")


@verb
def predict(
    terminal,
    model: ModelFile,
    file: DataFile,
    out: Annotated[str, typer.Option("--out", "-o", metavar="OUT", help="File to write: .csv, .npy or .h5.")],
    output: Annotated[str, typer.Option("--output", metavar="|".join(OUTPUTS), help="What to write.")] = "label",
    range_policy: RangePolicy = None,
    x: Table = "X",
    where: Where = None,
    features: Features = None,
    drop: Drop = None,
    index_base: IndexBase = "auto",
):
    """Write labels, scores or probabilities of rows.

    The rows stand in the order of the file.
    """
    if output not in OUTPUTS:
        raise ConfigError(f"--output: {output!r} is not one of {', '.join(OUTPUTS)}.")
    import numpy as np  # and these load numba, which the parser must not

    from linadd.cli.predictions import PredictionTable, find_writer
    from linadd.cli.progress import row_bar
    from linadd.cli.scoring import RangeGuard, open_for_model, scored_pieces
    from linadd.models import load_model

    started = time.monotonic()
    writer = find_writer(out)
    check_writable(out)
    trained = load_model(model)
    refuse_same_file(out, model)
    table = PredictionTable.of(output, trained, model)  # of the file's digest, whatever the policy
    guard = RangeGuard(trained, range_policy)
    trained = guard.model

    def scores(X):
        found = trained.scores(X)
        return found[:, 0] if trained.n_outputs == 1 else found

    compute = {"label": trained.predict, "decision": scores, "proba": trained.predict_proba}[output]
    # A loss without probabilities is refused before anything is read.
    compute(np.clip(np.zeros((1, trained.n_features)), *trained.ranges.T))
    source = open_for_model(
        file, trained, model, where=where, target=out, x=x, y_name=None, index_base=index_base, features=features,
        drop=drop,
    )  # fmt: skip
    with (
        atomic_path(out) as temporary,
        row_bar(terminal, "rows") as progress,
        writer(temporary, table, source.n_rows) as write,
    ):
        for chunk, rows, predictions in scored_pieces(source, trained, guard, compute):
            write(predictions)
            progress(chunk.first_row + rows.stop, source.n_rows)
    record = {"out": out, "output": output, "n_rows": source.n_rows, "columns": table.columns, **table.metadata}
    record |= {
        "range": guard.record(),
        "seconds": time.monotonic() - started,
        "peak_memory_bytes": peak_memory_bytes(),
    }
    text = f"{out}: {output} of {source.n_rows:,} rows of {source.origin}, model {model} ({record['model_digest']})"
    return Result(record, f"{text}\n{guard.text()}" if guard.has_report else text)
