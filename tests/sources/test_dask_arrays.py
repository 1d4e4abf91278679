"""Dask arrays: each block is computed once in a pass, and what dask does not know is asked for."""

import dask.array as da
import numpy as np

from linadd.sources import open_source
from tests.checks.check_source import position_table, refusal

X, Y, _ = position_table(20, 4)


def counted(blocks, chunks=(7, 4)):
    """The table as a dask array that notes the first value of each block it computes."""

    def note(block):
        blocks.append(block[0, 0])
        return block

    return da.from_array(X, chunks=chunks).map_blocks(note, dtype=X.dtype, meta=np.empty((0, 0)))


def test_a_pass_computes_each_block_once_for_any_chunks():
    for chunk_rows in (1, 5, 7, 8, 50):
        blocks = []
        source = open_source(counted(blocks), Y, chunk_rows=chunk_rows)
        np.testing.assert_array_equal(np.concatenate([chunk.X for chunk in source.chunks()]), X)
        assert blocks == [X[0, 0], X[7, 0], X[14, 0]]


def test_blocks_of_columns_are_joined():
    source = open_source(da.from_array(X, chunks=(6, 1)))
    np.testing.assert_array_equal(source.read(5, 13).X, X[5:13])


def test_unknown_sizes_are_refused_with_the_remedy():
    X_dask = da.from_array(X, chunks=(7, 4))
    filtered = X_dask[X_dask[:, 0] > 9]
    message = "dask array: X has chunks of unknown size. Call X.compute_chunk_sizes() first."
    assert refusal(open_source, filtered) == message
    assert open_source(filtered.compute_chunk_sizes()).n_rows == 17


def test_a_block_must_be_what_dask_was_told():
    wrong = da.from_array(X, chunks=(7, 4)).map_blocks(lambda block: block.astype(np.float32), dtype=np.float64)
    assert refusal(open_source(wrong).read, 8, 9) == (
        "dask array: block 1 of X is (7, 4) float32; dask was told (7, 4) float64. Correct its dtype and chunks."
    )


def test_tables_that_are_refused():
    message = "dask array: X has 20 rows and y has 3 entries. Both must describe the same rows."
    assert refusal(open_source, da.from_array(X), da.arange(3)) == message
    message = "dask array: X has shape (20,); a table of rows and features is needed."
    assert refusal(open_source, da.from_array(Y)).startswith(message)
