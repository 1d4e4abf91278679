"""`linadd convert SRC DST.h5`: any source as a native HDF5 file in chunks of whole rows, which trains fast."""

import os
import time
import warnings
from typing import Annotated, Any

import typer

from linadd.atomic import check_writable
from linadd.cli.arguments import (
    DataFile,
    Drop,
    Features,
    IndexBase,
    Labels,
    Table,
    Weights,
    Where,
    open_rows,
    parse_integer,
    verb,
)
from linadd.cli.terminal import Result, format_bytes, peak_memory_bytes
from linadd.errors import ConfigError, DataWarning
from linadd.interrupt import StopRequest

__all__ = ["convert"]

SUFFIXES = (".h5", ".hdf5")


@verb
def convert(
    terminal,
    source: DataFile,
    target: Annotated[str, typer.Argument(metavar="DST.h5", help="HDF5 file to write.")],
    dtype: Annotated[str | None, typer.Option("--dtype", metavar="TYPE", help="Type of X, such as float32.")] = None,
    codec: Annotated[str, typer.Option("--codec", metavar="lz4|zstd|none", help="Compression of X.")] = "lz4",
    chunk_rows: Annotated[
        Any,
        typer.Option(
            "--chunk-rows", metavar="N", parser=parse_integer, help="Rows of a chunk; by default at most 1 MB of them."
        ),
    ] = None,
    shuffle: Annotated[bool, typer.Option("--shuffle", help="Write the rows in random order.")] = False,
    seed: Annotated[Any, typer.Option("--seed", metavar="N", parser=parse_integer, help="Seed of --shuffle.")] = 0,
    x: Table = "X",
    y: Labels = "y",
    weights: Weights = None,
    where: Where = None,
    features: Features = None,
    drop: Drop = None,
    rename: Annotated[
        list[str] | None, typer.Option("--rename", metavar="OLD=NEW", help="Another name for a column; repeatable.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="OLD=NEW", help="A new label for OLD, such as 0=-1; others stay; repeatable."),
    ] = None,
    index_base: IndexBase = "auto",
    verify: Annotated[
        bool, typer.Option("--verify/--no-verify", help="Read the file back and compare checksums of all values.")
    ] = True,
):
    """Rewrite rows as HDF5 for fast training, whole or not at all.

    After Ctrl-C, a kill or a full disk what was written up to the last checkpoint (about every 256 MB) stays as
    DST.h5.part, and the same command goes on there. One with another source, a source that was changed, or other
    options begins anew.
    """
    if os.path.splitext(target)[1].lower() not in SUFFIXES:
        raise ConfigError(f"{target}: convert writes HDF5. Give a name that ends in {' or '.join(SUFFIXES)}.")
    check_writable(target)
    from linadd.cli.progress import row_bar  # these load numba
    from linadd.sources.convert import convert as convert_source

    started = time.monotonic()
    with warnings.catch_warnings():  # of the layout that is about to be changed
        warnings.filterwarnings("ignore", ".*slow to read by rows", DataWarning)
        rows = open_rows(
            source, where=where, target=target, x=x, y_name=y, weights=weights, index_base=index_base,
            features=features, drop=drop,
        )  # fmt: skip
    rows = under_new_names(rows, rename or [], label or [])
    with (
        StopRequest(lambda: terminal.say("Stopping after these rows; Ctrl-C again aborts.")) as stop,
        rows,
        row_bar(terminal, "rows") as show,
    ):

        def progress(done, total):
            show(done, total)
            if stop.is_set:
                raise KeyboardInterrupt

        record = convert_source(
            rows, target, dtype=dtype, codec=codec, chunk_rows=chunk_rows, shuffle=shuffle, seed=seed, verify=verify,
            progress=progress,
        )  # fmt: skip
    if label and not record["resumed_at"]:
        for old in sorted(rows.unmet):
            terminal.warn(f"--label {old}={rows.labels[old]}: no row has the label {old!r}.")
    record |= {"source": source, "seconds": time.monotonic() - started, "peak_memory_bytes": peak_memory_bytes()}
    shape = f"{record['n_rows']:,} rows of {record['n_features']:,} features"
    checked = ", verified" if verify else ""
    text = f"{target}: {shape}, {record['dtype']}, {format_bytes(record['bytes'])}{checked}"
    return Result(record, text)


def under_new_names(rows, rename, label):
    """The rows with the names of columns and labels that --rename and --label give; as they are without either."""
    from linadd.sources.renames import RenamedSource, split_column_pair, split_label_pairs  # numpy

    if not (rename or label):
        return rows
    columns = {}
    for pair in rename:
        old, new = split_column_pair(pair, rows)
        if old in columns:
            raise ConfigError(f"--rename {pair}: gives {old!r} a second new name. Give it one.")
        columns[old] = new
    return RenamedSource(rows, columns, split_label_pairs(label))
