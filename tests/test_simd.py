"""The vector type: compiled and with the JIT off, it does what NumPy does on arrays of 16 values."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from linadd._jit import compiled
from linadd._simd import ALIGNMENT, N_LANES, aligned_zeros, load, multiply_add, padded, splat, store


@compiled
def copy(source, at, target, to):
    store(target, to, load(source, at))


@compiled
def combine(scalar, a, b, out):
    store(out, 0, multiply_add(splat(scalar), load(a, 0), load(b, 0)))


@compiled
def sum_of_products(a, b, out):
    total = splat(np.float32(0))
    for at in range(0, a.size, N_LANES):
        total = multiply_add(load(a, at), load(b, at), total)
    store(out, 0, total)


rng = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(64,), (4, 16), (2, 2, 16)])
@pytest.mark.parametrize("at", [0, 1, 15, 48])
def test_load_and_store_count_values_from_the_start(shape, at):
    source, target = rng.normal(size=shape).astype(np.float32), np.zeros(shape, np.float32)
    copy(source, at, target, 48 - at)
    expected = np.zeros(64, np.float32)
    expected[48 - at : 64 - at] = source.reshape(-1)[at : at + 16]
    np.testing.assert_array_equal(target.reshape(-1), expected)


def test_multiply_add_rounds_once_or_twice():
    a, b, out = (rng.normal(size=16).astype(np.float32) for _ in range(3))
    scalar = np.float32(0.3)
    combine(scalar, a, b, out)
    once = (np.float64(scalar) * a + b).astype(np.float32)
    twice = scalar * a + b
    assert ((out == once) | (out == twice)).all()
    a[0], b[1] = np.nan, -np.inf
    combine(scalar, a, b, out)
    assert np.isnan(out[0]) and out[1] == -np.inf


def test_a_loop_over_vectors():
    a, b, out = (
        rng.normal(size=(9, 16)).astype(np.float32),
        rng.normal(size=(9, 16)).astype(np.float32),
        aligned_zeros(16),
    )
    sum_of_products(a, b, out)
    exact = (a.astype(np.float64) * b).sum(axis=0)
    # Nine additions in float32.
    assert (np.abs(out - exact) <= 9 * np.finfo(np.float32).eps * np.abs(a.astype(np.float64) * b).sum(axis=0)).all()


def test_lanes_do_not_mix():
    for lane in range(N_LANES):
        a, out = aligned_zeros(16), aligned_zeros(16)
        a[lane] = 1
        combine(np.float32(2), a, aligned_zeros(16), out)
        assert np.flatnonzero(out).tolist() == [lane] and out[lane] == 2


@pytest.mark.parametrize(("n", "expected"), [(0, 0), (1, 16), (16, 16), (17, 32), (32, 32)])
def test_padded(n, expected):
    assert padded(n) == expected


@pytest.mark.parametrize("shape", [16, (3, 16), (1, 5, 7)])
def test_aligned_zeros(shape):
    for array in [aligned_zeros(shape) for _ in range(5)]:
        assert array.dtype == np.float32 and array.shape == np.zeros(shape).shape and not array.any()
        assert array.ctypes.data % ALIGNMENT == 0 and array.flags.c_contiguous and array.flags.writeable


def test_with_the_jit_off_the_names_are_numpy_functions():
    script = """
import json
import numpy as np
from linadd._simd import load, multiply_add, splat, store
a = np.arange(40, dtype=np.float32).reshape(2, 20)
out = np.zeros((2, 16), np.float32)
held = load(a, 3)
a[0, 3] = -1
store(out, 16, multiply_add(splat(np.float32(2)), held, load(a, 20)))
print(json.dumps([out.tolist(), str(out.dtype), str(held.dtype)]))
"""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command, root = [sys.executable, "-c", script], Path(__file__).parent.parent
    result = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True)
    expected = np.zeros((2, 16))
    expected[1] = 2 * np.arange(3, 19) + np.arange(20, 36)
    assert json.loads(result.stdout) == [expected.tolist(), "float32", "float32"]
