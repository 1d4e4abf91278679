"""The cache of compiled code, threads, and what fresh interpreters do: with the JIT, without it, with bounds checks."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from linadd import _jit
from linadd._jit import compiled, compiled_sums, run_threads, shares, stream_threads

ROOT = Path(__file__).parent.parent


def package(folder, **files):
    """A package of source files, with `_jit.py` among them."""
    folder.mkdir()
    for name, text in {"_jit": "# linadd._jit", **files}.items():
        (folder / f"{name}.py").write_text(text)
    return folder


@pytest.fixture
def at(monkeypatch):
    """Make `_jit` believe that it stands in another package."""
    return lambda folder: monkeypatch.setattr(_jit, "__file__", str(folder / "_jit.py"))


def test_the_digest_sees_every_file_that_compiled_code_comes_from(tmp_path, at):
    files = {
        "loops": "from linadd._jit import compiled",
        "vectors": "from linadd._simd import load",
        "record": "class Block(NamedTuple): a: int; b: int",
        "plain": "x = 1",
    }
    digests = {}
    for k, (name, text) in enumerate([("", ""), *((name, "  # edited") for name in files)]):
        folder = package(tmp_path / str(k), **{key: value + text * (key == name) for key, value in files.items()})
        at(folder)
        digests[name] = _jit.source_digest()
    assert digests["plain"] == digests[""]
    assert len(set(digests.values())) == len(files)


def test_the_digest_sees_folders_and_names(tmp_path, at):
    one, two = package(tmp_path / "a"), package(tmp_path / "b")
    (one / "sub").mkdir()
    (one / "sub" / "x.py").write_text("linadd._jit")
    (two / "x.py").write_text("linadd._jit")
    at(one)
    digest = _jit.source_digest()
    at(two)
    assert _jit.source_digest() != digest


def test_the_cache_stands_beside_the_package_or_with_the_user(tmp_path, at, monkeypatch):
    at(package(tmp_path / "linadd"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    name = f"compiled-{_jit.source_digest()}"
    assert _jit.cache_folder() == tmp_path / "linadd" / "__pycache__" / name
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert _jit.cache_folder() == tmp_path / "cache" / "linadd" / name

    def refuse(path, **options):
        raise PermissionError

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert _jit.cache_folder() == tmp_path / "cache" / "linadd" / name
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert _jit.cache_folder() == Path.home() / ".cache" / "linadd" / name


def test_a_new_cache_drops_the_oldest_of_the_others(tmp_path, at, monkeypatch):
    monkeypatch.setattr(_jit.numba.config, "CACHE_DIR", "")
    at(package(tmp_path / "linadd"))
    parent = tmp_path / "linadd" / "__pycache__"
    for k in range(7):
        (parent / f"compiled-{k}").mkdir(parents=True)
        os.utime(parent / f"compiled-{k}", (k, k))
    (parent / "other").mkdir()
    _jit.use_cache()
    assert sorted(path.name for path in parent.iterdir()) == [*(f"compiled-{k}" for k in range(3, 7)), "other"]
    assert str(_jit.cache_folder()) == _jit.numba.config.CACHE_DIR
    # With the folder there, nothing is dropped.
    _jit.cache_folder().mkdir()
    _jit.use_cache()
    assert len(list(parent.iterdir())) == 6


def test_a_cache_that_another_process_removes_has_no_age(tmp_path):
    assert _jit.age(tmp_path / "gone") == 0.0 < _jit.age(tmp_path)


@compiled
def is_nan(x):
    return np.isnan(x)


@compiled_sums
def count_nan(values):
    count, total = 0, 0.0
    for x in values:
        count += np.isnan(x)
        total += x
    return count, total


@compiled
def divide(a, b):
    return a / b


def test_sums_are_reordered_but_nan_and_infinity_stay():
    assert is_nan(np.nan)
    count, total = count_nan(np.array([1.0, np.nan, 2.0]))
    assert count == 1 and np.isnan(total)
    assert count_nan(np.array([np.inf, 1.0])) == (0, np.inf)


def test_division_by_zero_is_numpys():
    assert divide(1.0, 0.0) == np.inf and np.isnan(divide(0.0, 0.0))


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_tasks(n_threads):
    def task(k, wait_for, event):
        if n_threads > 1 and wait_for is not None:
            assert wait_for.wait(30)  # the first task ends last
        event.set()
        return k * k

    events = [threading.Event() for _ in range(6)]
    tasks = [(k, events[1] if k == 0 else None, events[k]) for k in range(6)]
    assert run_threads(task, iter(tasks), n_threads) == [k * k for k in range(6)]
    assert run_threads(task, [], n_threads) == []


def test_one_thread_is_the_callers():
    assert run_threads(threading.get_ident, [(), ()], 1) == [threading.get_ident()] * 2
    assert run_threads(threading.get_ident, [()], 4) == [threading.get_ident()]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_first_exception_is_raised(n_threads):
    def task(k):
        if k > 1:
            raise ValueError(f"task {k}")

    with pytest.raises(ValueError) as caught:
        run_threads(task, [(k,) for k in range(5)], n_threads)
    assert str(caught.value) == "task 2"


def run(folder, **environment):
    """Decisions and signatures of `compiled_run.py` in a fresh interpreter."""
    command = [sys.executable, str(ROOT / "tests" / "compiled_run.py"), str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def compiled_result(tmp_path_factory):
    return run(tmp_path_factory.mktemp("compiled"))


def test_each_loop_is_compiled_once(compiled_result):
    # Two versions where rows come as float64 and uint8, where positions are int32 and float32, of basis_values, and of
    # what reads a code of float32 or float64. load_row has four: int32 and float32, of Rows and of a block.
    many = {"X", "x", "rows", "positions", "block", "values", "scratch", "index"}
    assert len(compiled_result["signatures"]) > 30
    for name, (arguments, signatures) in compiled_result["signatures"].items():
        allowed = 4 if name == "linadd.encoders.rows.load_row" else 2 if many & set(arguments) else 1
        assert len(signatures) <= allowed, f"{name}: {signatures}"
        for signature in signatures:
            assert "readonly" not in signature and "'C', True" not in signature, f"{name}: {signature}"
            assert "'A'" not in signature and "d, A)" not in signature, f"{name}: {signature}"


def assert_close(found, expected):
    """Scores after two passes, from sums of float32 in another order, along the same path."""
    for one, other in zip(found["decisions"], expected["decisions"], strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-3)


def test_without_the_jit_the_results_are_the_same(tmp_path, compiled_result):
    plain = run(tmp_path, NUMBA_DISABLE_JIT="1")
    assert plain["signatures"] == {}
    assert_close(plain, compiled_result)


def test_no_loop_leaves_its_arrays(tmp_path, compiled_result):
    # The cache does not tell code with checks from code without them.
    checked = run(tmp_path, NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(_jit.cache_folder() / "checked"))
    assert_close(checked, compiled_result)


def test_code_just_compiled_and_code_from_the_cache_give_the_same_bits(tmp_path):
    cold = run(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cold"))
    assert cold["decisions"] == run(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cold"))["decisions"]


@pytest.mark.parametrize("n_threads", [1, 2, 7])
def test_shares_are_all_rows_once_and_of_like_size(n_threads):
    parts = [range(23)[part] for part in shares(23, n_threads)]
    assert [row for part in parts for row in part] == list(range(23))
    assert {len(part) for part in parts} <= {23 // n_threads, 23 // n_threads + 1}


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_a_stream_of_tasks_keeps_its_order_and_holds_few(n_threads):
    drawn = []

    def tasks():
        for k in range(40):
            drawn.append(k)
            yield (k,)

    for k, result in enumerate(stream_threads(lambda k: k * k, tasks(), n_threads)):
        assert result == k * k
        assert len(drawn) <= k + 1 + (n_threads if n_threads > 1 else 0)
    assert drawn == list(range(40))


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_stream_of_tasks_raises_what_a_task_raises(n_threads):
    def divide(k):
        return 12 // (3 - k)

    results = stream_threads(divide, ((k,) for k in range(10)), n_threads)
    assert [next(results) for _ in range(3)] == [4, 6, 12]
    with pytest.raises(ZeroDivisionError):
        next(results)
