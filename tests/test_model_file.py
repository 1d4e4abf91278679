"""Model files: exact round trips, equal bytes, and one line of error for everything that is not whole."""

import json
import os
import tracemalloc

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from linadd import model_file
from linadd.errors import DataError, FormatError
from linadd.model_file import (
    check_tensors,
    load_model_file,
    make_check_rows,
    model_digest,
    save_model,
    score_difference,
    take_tensor,
    verify_check_scores,
)

DTYPES = sorted(map(str, model_file.NAMES))
HEADER = {"class": "toy", "classes": ["no", "yes — é"], "gap": 1e-17, "options": {"C": 0.1, "n_bins": 10}, "none": None}


def some_tensors():
    rng = np.random.default_rng(0)
    return {
        "intercept": rng.standard_normal(2),
        "coef": rng.standard_normal((3, 4, 2)).astype(np.float32),
        "knots": rng.standard_normal((3, 5)),
        "codes": rng.integers(0, 255, 7).astype(np.uint8),
    }


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "m.safetensors"
    save_model(path, some_tensors(), HEADER)
    return path


def split(path):
    """A file's table and the bytes after it."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def join(path, table, data):
    """Write a file from a table, which may be any JSON value or text, and the bytes after it."""
    head = (table if isinstance(table, str) else json.dumps(table)).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + data)


def refusal(path):
    """The text of the FormatError that loading raises, its leading path replaced by PATH."""
    with pytest.raises(FormatError) as caught:
        load_model_file(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ") and "\n" not in text
    return text.replace(str(path), "PATH")


DAMAGED = "the file is damaged or cut short. Copy it again or train the model anew."


# --- what comes back is what went in ---


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (0, 5), (3,), (2, 3, 4)])
def test_round_trip_is_exact_for_every_dtype_and_shape(tmp_path, dtype, shape):
    rng = np.random.default_rng(1)
    array = rng.integers(0, 100, shape).astype(dtype)
    path = tmp_path / "m.safetensors"
    save_model(path, {"a": array, "odd": np.ones(3, np.uint8)}, {})
    loaded = load_model_file(path)[0]["a"]
    assert loaded.dtype == array.dtype and loaded.shape == shape and loaded.dtype.isnative
    np.testing.assert_array_equal(loaded, array)
    assert loaded.flags.writeable and loaded.flags.aligned and loaded.flags.owndata


def test_header_comes_back_with_every_float_exact(tmp_path):
    values = np.random.default_rng(2).standard_normal(100) * 10.0 ** np.arange(-50, 50)
    path = tmp_path / "m.safetensors"
    save_model(path, {}, {**HEADER, "values": values, "tuple": (np.int64(3), np.float64(0.1), np.True_)})
    tensors, header = load_model_file(path)
    assert tensors == {}
    assert header == {**HEADER, "values": values.tolist(), "tuple": [3, 0.1, True]}


def test_strided_and_big_endian_arrays_are_stored_by_value(tmp_path):
    array = np.arange(12.0).reshape(3, 4)
    path = tmp_path / "m.safetensors"
    save_model(path, {"t": array.T, "big": array.astype(">f8"), "step": array[:, ::2]}, {})
    tensors, _ = load_model_file(path)
    for name, expected in {"t": array.T, "big": array, "step": array[:, ::2]}.items():
        np.testing.assert_array_equal(tensors[name], expected)


def test_bytes_depend_on_the_content_only(tmp_path):
    tensors = some_tensors()
    save_model(tmp_path / "a", tensors, HEADER)
    save_model(tmp_path / "b", dict(reversed(tensors.items())), dict(reversed(HEADER.items())))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_safetensors_package_reads_the_same_arrays(saved):
    theirs = safetensors.numpy.load_file(saved)
    ours, header = load_model_file(saved)
    assert theirs.keys() == ours.keys()
    for name, array in theirs.items():
        np.testing.assert_array_equal(ours[name], array)
    with safetensors.safe_open(saved, "np") as file:
        metadata = file.metadata()
    assert metadata["format"] == "linadd" and metadata["format_version"] == "1"
    assert json.loads(metadata["header"]) == header == HEADER


def test_arrays_start_at_multiples_of_their_item_size(saved):
    table, data = split(saved)
    start = saved.stat().st_size - len(data)
    for name, array in some_tensors().items():
        assert (start + table[name]["data_offsets"][0]) % array.dtype.itemsize == 0


# --- what cannot be saved ---


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({"gap": float("nan")}, "Out of range float values are not JSON compliant"),
        ({"loss": {1, 2}}, "a set"),
    ],
)
def test_a_header_that_json_cannot_hold_is_refused_and_the_old_file_stays(saved, header, reason):
    before = saved.read_bytes()
    with pytest.raises(FormatError) as caught:
        save_model(saved, some_tensors(), header)
    # Newer Python adds the value to its own reason.
    assert str(caught.value).startswith(f"the header holds what JSON cannot: {reason}")
    assert str(caught.value).endswith(". Leave it out or use null.")
    assert saved.read_bytes() == before and os.listdir(saved.parent) == [saved.name]


def test_a_target_that_cannot_be_written_is_named(tmp_path):
    target = tmp_path / "none" / "m.safetensors"
    with pytest.raises(DataError, match="none' does not exist"):
        save_model(target, {}, {})


def test_a_dtype_without_a_name_is_refused(tmp_path):
    with pytest.raises(FormatError) as caught:
        save_model(tmp_path / "m", {"a": np.ones(2, complex)}, {})
    assert str(caught.value) == (
        "tensor 'a' has dtype complex128. Convert it to one of "
        "float64, float32, int64, int32, int16, int8, uint64, uint32, uint16, uint8."
    )


def test_a_header_beyond_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(model_file, "TABLE_BYTES_LIMIT", 1000)
    with pytest.raises(FormatError) as caught:
        save_model(tmp_path / "m", {}, {"names": "x" * 1000})
    assert str(caught.value) == f"{tmp_path / 'm'}: the header takes 1136 bytes, the limit is 1000. Shorten it."


# --- what is not a whole model of ours ---


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(DataError) as caught:
        load_model_file(tmp_path / "none")
    assert str(caught.value) == (
        f"{tmp_path / 'none'}: cannot be read (No such file or directory). Give a model file that exists."
    )
    with pytest.raises(DataError, match="Is a directory"):
        load_model_file(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\x89HDF\r\n\x1a\n" + bytes(100), b"\xff" * 8, bytes([100]) + bytes(20)])
def test_a_file_without_a_table_is_no_model(tmp_path, content):
    path = tmp_path / "m"
    path.write_bytes(content)
    assert refusal(path) == (
        f"PATH: is no model file: its {len(content)} bytes do not begin with the table of one. Give a model of linadd."
    )


def test_a_file_of_another_program_is_told_apart(tmp_path):
    path = tmp_path / "m.safetensors"
    safetensors.numpy.save_file({"a": np.ones(3)}, path, {"format": "pt"})
    assert refusal(path) == "PATH: is a safetensors file of another program. Give a model that linadd wrote."


def test_a_newer_format_is_refused(saved):
    table, data = split(saved)
    table["__metadata__"]["format_version"] = "2"
    join(saved, table, data)
    assert refusal(saved) == "PATH: has format version 2, this linadd reads up to 1. Upgrade linadd."


def edit(*keys, to):
    """A change of one entry of a table, found by its keys."""

    def change(table):
        for key in keys[:-1]:
            table = table[key]
        table[keys[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (edit("__metadata__", "format_version", to="0"), "its format version is '0'"),
        (edit("__metadata__", "format_version", to="one"), "its format version is 'one'"),
        (edit("__metadata__", "format_version", to=1), "its format version is 1"),
        (edit("__metadata__", "format_version", to="9" * 5000), f"its format version is '{'9' * 39}"),
        (edit("__metadata__", "header", to=None), "its header is missing"),
        (edit("__metadata__", "header", to="[]"), "its header is a list, not an object"),
        (edit("__metadata__", "header", to='{"gap": NaN}'), "its header is not JSON (the number NaN)"),
        (edit("__metadata__", "header", to='{"gap": -1e999}'), "its header is not JSON (the number -1e999)"),
        (edit("__metadata__", "header", to='{"gap": 2}'), "its content does not match its checksum"),
        (edit("__metadata__", "header", to='{"é\ud800": 2}'), "its content does not match its checksum"),
        (edit("__metadata__", "checksum", to=[]), "its content does not match its checksum"),
        (edit("coef", to=3), "tensor 'coef' has no known dtype"),
        (edit("coef", "dtype", to="BF16"), "tensor 'coef' has no known dtype"),
        (edit("coef", "dtype", to=["F64"]), "tensor 'coef' has no known dtype"),
        (edit("coef", "dtype", to="F64"), "tensor 'coef' does not fill its bytes 136 to 232"),
        (edit("coef", "shape", to=[3, 4, 3]), "tensor 'coef' does not fill its bytes 136 to 232"),
        (edit("coef", "shape", to=[-3, -4, 2]), "tensor 'coef' has no valid shape"),
        (edit("coef", "shape", to=[3, 4, 2.0]), "tensor 'coef' has no valid shape"),
        (edit("coef", "shape", to=[1] * 33), "tensor 'coef' has no valid shape"),
        (edit("coef", "shape", to=[2**62, 4]), "tensor 'coef' has no valid shape"),
        (edit("coef", "shape", to=[0, 2**62]), "tensor 'coef' has no valid shape"),
        (edit("coef", "data_offsets", to=[136]), "tensor 'coef' has no valid offsets"),
        (edit("coef", "data_offsets", to=[136, 2**64]), "tensor 'coef' has no valid offsets"),
        (edit("coef", "data_offsets", to=[232, 136]), "tensor 'coef' does not fill its bytes 232 to 136"),
        (edit("coef", "data_offsets", to=[128, 224]), "tensor 'coef' starts at byte 128, the one before ends at 136"),
        (edit("coef", "data_offsets", to=[144, 240]), "tensor 'coef' starts at byte 144, the one before ends at 136"),
        (lambda table: table.pop("codes"), "its tensors take 232 bytes, 239 are there"),
    ],
)
def test_every_inconsistency_is_named(saved, change, what):
    table, data = split(saved)
    change(table)
    join(saved, table, data)
    assert refusal(saved) == f"PATH: {what}: {DAMAGED}"


@pytest.mark.parametrize("text", ["{", "\x00", "[" * 100_000, '{"a":' * 5000 + "1" + "}" * 5000, "9" * 5000])
def test_a_table_that_is_not_json_is_damage(saved, text):
    join(saved, text, b"")
    assert refusal(saved).startswith("PATH: its header is ") and refusal(saved).endswith(DAMAGED)


def test_a_file_that_shrinks_while_it_is_read_is_damage(saved, monkeypatch):
    save_model(saved, {"long": np.zeros(100_000)}, {})  # longer than the file object's buffer
    read_table = model_file.read_table

    def truncate_after(file, size, path):
        result = read_table(file, size, path)
        os.truncate(path, size - 1)
        return result

    monkeypatch.setattr(model_file, "read_table", truncate_after)
    assert refusal(saved) == f"PATH: it became shorter while it was read: {DAMAGED}"


def test_flipped_and_cut_files_never_pass(saved):
    """200 seeded mutations; a bit anywhere counts, the padding of the table included."""
    rng = np.random.default_rng(3)
    whole = saved.read_bytes()
    for trial in range(200):
        content = bytearray(whole)
        if trial % 4:
            for _ in range(rng.integers(1, 4)):
                content[rng.integers(len(content))] ^= 1 << rng.integers(8)
        else:
            del content[rng.integers(len(content)) :]
        if content == whole:
            continue
        saved.write_bytes(content)
        tracemalloc.start()
        with pytest.raises(FormatError):
            load_model_file(saved)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # A parsed table takes a few times its text; the file has 1 kB, a tensor of a flipped length would have more.
        assert peak < 20 * len(whole) + 50_000


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
counts = st.integers(0, 40) | st.integers(-1, 2**70)
entries = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "F64", "U8"]),
        "shape": st.lists(counts, max_size=4),
        "data_offsets": st.lists(counts, max_size=3),
    }
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(table=st.dictionaries(st.sampled_from(["a", "b", "c"]), entries | json_values, max_size=3), n_bytes=counts)
def test_a_hostile_table_is_refused_or_tiles_the_bytes(table, n_bytes):
    try:
        order = model_file.check_table(table, n_bytes, "m")
    except FormatError:
        return
    spans = [table[name]["data_offsets"] for name in order]
    assert [stop for _, stop in spans] == [start for start, _ in spans[1:]] + [n_bytes] if spans else n_bytes == 0
    assert all(len(np.empty(table[n]["shape"], np.uint8)) <= n_bytes or 0 in table[n]["shape"] for n in order if spans)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(value=json_values)
def test_any_json_in_place_of_the_table_is_refused(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "hostile"
    join(path, value, b"")
    refusal(path)


# --- the digest ---


def test_digest_is_that_of_the_saved_and_the_loaded_model(saved):
    assert model_digest(*load_model_file(saved)) == model_digest(some_tensors(), HEADER)
    assert len(model_digest({}, {})) == 32


def test_digest_leaves_the_facts_of_a_run_outside():
    bare = {"class": "toy", "history": [{"gap": 0.1}, {"gap": 0.01}]}
    run = {
        "class": "toy",
        "fingerprint": {"path": "a.h5"},
        "seconds": 3.5,
        "n_jobs": 2,
        "history": [{"gap": 0.1, "seconds": 1.0, "rows_per_second": 1e6}, {"gap": 0.01, "peak_memory_bytes": 5}],
    }
    assert model_digest({}, run) == model_digest({}, bare)


def test_digest_sees_every_other_change():
    tensors = some_tensors()
    nudged = tensors["coef"].copy()
    nudged[2, 3, 1] = np.nextafter(nudged[2, 3, 1], np.float32(9))
    variants = [
        (tensors, HEADER),
        (tensors, {**HEADER, "gap": 2e-17}),
        ({**tensors, "coef": nudged}, HEADER),
        ({**tensors, "coef": tensors["coef"].reshape(4, 3, 2)}, HEADER),
        ({**tensors, "codes": tensors["codes"].view(np.int8)}, HEADER),
        ({("Coef" if name == "coef" else name): array for name, array in tensors.items()}, HEADER),
    ]
    assert len({model_digest(*variant) for variant in variants}) == len(variants)


# --- check rows ---


def test_check_rows_are_seeded_and_span_each_range():
    huge = np.finfo(float).max
    ranges = np.array([[-1.0, 3.0], [5.0, 5.0], [-huge, huge], [-np.inf, np.inf]])
    rows = make_check_rows(ranges, seed=4)
    assert rows.shape == (32, 4) and rows.dtype == np.float64
    assert (rows >= ranges[:, 0]).all() and (rows <= ranges[:, 1]).all()
    assert (rows[:, 1] == 5).all() and (np.abs(rows[:, 3]) <= 1).all()
    assert np.ptp(rows[:, 0]) > 3 and np.ptp(rows[:, 2] / huge) > 1.5
    np.testing.assert_array_equal(rows, make_check_rows(ranges, seed=4))
    assert (rows[:, 0] != make_check_rows(ranges, seed=5)[:, 0]).all()


def linear(coef):
    return lambda rows: rows @ coef


def test_check_scores_accept_the_model_that_made_them_and_no_other():
    coef = np.array([[1.0, 2.0], [-3.0, 0.5]])
    tensors = check_tensors([[0, 1], [0, 2]], linear(coef), seed=6)
    verify_check_scores(tensors, linear(coef))
    verify_check_scores(tensors, linear(coef * (1 + 1e-10)))
    with pytest.raises(FormatError) as caught:
        verify_check_scores(tensors, linear(coef * 1.5))
    assert str(caught.value) == (
        "the scores of its check rows differ from the saved ones by 5.0e-01 (relative; allowed 1e-09): it does not "
        "compute what it computed when it was saved. Train the model anew."
    )
    with pytest.raises(FormatError, match="differ from the saved ones by nan"):
        verify_check_scores(tensors, linear(coef * np.nan))


def test_score_difference_is_relative_to_the_largest_score():
    assert score_difference(np.array([1.0, 4.5]), np.array([1.0, -5.0])) == 9.5 / 5
    assert score_difference(np.zeros(2), np.zeros(2)) == 0
    assert np.isnan(score_difference(np.array([np.inf]), np.array([np.inf])))


def test_take_tensor_checks_what_compiled_code_relies_on():
    tensors = {"coef": np.ones((3, 4), np.float32)}
    assert take_tensor(tensors, "coef", np.float32, (3, None)) is tensors["coef"]
    assert take_tensor(tensors, "coef", "float32", (None, 4)) is tensors["coef"]
    for dtype, shape, wanted in [
        (np.float64, (3, 4), "float64 of shape (3, 4)"),
        (np.float32, (3, 5), "float32 of shape (3, 5)"),
        (np.float32, (None, 4, 1), "float32 of shape (any, 4, 1)"),
    ]:
        with pytest.raises(FormatError) as caught:
            take_tensor(tensors, "coef", dtype, shape)
        assert str(caught.value) == f"tensor 'coef' is float32 of shape (3, 4), not {wanted}. Train the model anew."
    with pytest.raises(FormatError) as caught:
        take_tensor(tensors, "knots", np.float64, ())
    assert str(caught.value) == "tensor 'knots' is missing; it has coef. Train the model anew."
