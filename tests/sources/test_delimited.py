"""CSV text: values as Python's float reads them, labels of one type, and each fault with its line and column."""

import csv
import io
import logging
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linadd.sources import delimited, open_source
from linadd.sources.delimited import DelimitedSource
from tests.checks.check_source import position_table, refusal, write_table


@pytest.fixture
def opened(tmp_path):
    """A function that opens a text, or bytes, as a CSV file."""

    def open_text(text, name="t.csv", **options):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return open_source(tmp_path / name, **options)

    return open_text


@settings(deadline=None, max_examples=30)
@given(
    table=st.lists(st.tuples(st.floats(allow_nan=False), st.text(max_size=6), st.floats(0, 9)), min_size=1, max_size=9),
    mark=st.sampled_from(",;\t|"),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_a_table_written_by_the_csv_module_comes_back(tmp_path_factory, table, mark, end):
    table = [(value, f"a{text.strip()}".replace("\0", ""), weight) for value, text, weight in table]
    file = io.StringIO()
    writer = csv.writer(file, delimiter=mark, lineterminator=end, quoting=csv.QUOTE_NONNUMERIC)  # else a CR stands bare
    writer.writerows([("x", "y", "w"), *table])
    path = tmp_path_factory.getbasetemp() / "t.csv"
    path.write_bytes(file.getvalue().encode())
    chunk = open_source(path, weights="w").read(0, len(table))
    assert chunk.X[:, 0].tolist() == [value for value, _, _ in table]
    assert chunk.y.tolist() == [label for _, label, _ in table]
    assert chunk.weight.tolist() == [weight for _, _, weight in table]


def test_values_are_those_of_float(opened):
    random = np.random.default_rng(0)
    texts = list(map(repr, (random.standard_normal(500) * 10.0 ** random.integers(-300, 300, 500)).tolist()))
    texts += ["+1.5", " 2 ", "\xa03", "\x0b4", "5.", ".5", "1e400", "-inf", str(2**53 + 1), f"0.1{'0' * 20}5551115123"]
    chunk = opened("x,y\n" + "".join(f"{text},1\n" for text in texts)).read(0, len(texts))
    assert chunk.X[:, 0].tolist() == list(map(float, texts))


def test_missing_values_are_nan(opened):
    tokens = [*delimited.MISSING, " ?", '""', '"NA"', "  NA ", "   "]
    source = opened("a,b,y\n" + "".join(f"{token},1,2\n" for token in tokens) + "3,4,5\n")
    X = source.read(0, len(tokens) + 1).X
    assert np.isnan(X[:-1, 0]).all() and X[-1, 0] == 3 and (X[:-1, 1] == 1).all()


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (["1", " 2", "9007199254740993"], [1, 2, 2**53 + 1]),
        (["1", "2", "3.5"], [1.0, 2.0, 3.5]),
        (["1", "2", "none"], ["1", "2", "none"]),
        (["None", " b ", '"c, ""d"""'], ["None", "b", 'c, "d"']),
    ],
)
def test_the_type_of_labels_holds_for_the_whole_file(opened, labels, found):
    filler = [f"0.5,{labels[0]}\n"] * 200_000  # more than two blocks
    own = [f"1.5,{label}\n" for label in labels]
    for rows in (filler + own, own + filler):
        source = opened("x,y\n" + "".join(rows))
        n, first = source.n_rows, rows.index(own[-1]) - 2
        assert n == len(rows)
        assert source.read(first, first + 3).y.tolist() == found
        for row in (0, n - 1):
            assert type(source.read(row, row + 1).y.tolist()[0]) is type(found[0])


def test_a_missing_number_among_the_labels_is_nan_and_a_missing_text_is_refused(opened):
    assert np.isnan(opened("x,y\n1,2\n1,NA\n").read(0, 2).y[1])
    source = opened('x,y\n1,cat\n\n1,""\n')
    message = f"{source.origin}, row 4, column 'y': the label is missing. Fill it, or drop the row."
    assert refusal(source.read, 0, 2) == message


def test_random_rows_of_a_large_file(tmp_path):
    X, y, weight = position_table(30_000, 4)
    source = open_source(write_table(tmp_path / "t.csv", X, y, weight, "abcd"), weights="w")
    assert len(source._marks[0]) > 10
    random = np.random.default_rng(0)
    for start in random.integers(0, 29_000, 20).tolist():
        chunk = source.read(start, start + 1000)
        np.testing.assert_array_equal(chunk.X, X[start : start + 1000])
        lines = np.arange(start, start + 1000) + 2 + 1 * (np.arange(start, start + 1000) > len(X) // 2 - 1)
        np.testing.assert_array_equal(chunk.row_numbers, lines)


def test_wide_rows_and_long_fields(opened):
    wide = ",".join(f"c{j}" for j in range(10_000)) + ",y\n" + (",".join(["1.5"] * 10_000) + ",cat\n") * 3
    source = opened(wide)
    assert source.n_features == 10_000 and (source.read(1, 3).X == 1.5).all()
    long = f'x,y\n1,"{"a" * 3_000_000}"\n2,b\n'
    assert [len(label) for label in opened(long, y_name="y").read(0, 2).y] == [3_000_000, 1]


def test_a_first_row_without_an_end(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "HEAD_BYTES", 1 << 10)
    assert opened("a" * 5000 + ",y\n1,2\n").feature_names == ["a" * 5000]
    monkeypatch.setattr(delimited, "MAX_ROW_BYTES", 1 << 20)
    message = f"{tmp_path / 't.csv'}: its first row does not end within 1 MB. Is it a table?"
    assert refusal(opened, "1," * (1 << 20)) == message


def test_several_files(tmp_path):
    X, y, weight = position_table(10, 3)
    write_table(tmp_path / "part-1.csv", X[:6], y[:6], weight[:6], "abc")
    write_table(tmp_path / "part-2.csv", X[6:, ::-1], y[6:], weight[6:], "cba", ";")
    source = open_source(tmp_path / "part-*.csv", weights="w", where={"y": [0, 2]})
    kept = y != 1
    chunk = source.read(0, source.n_rows)
    np.testing.assert_array_equal(chunk.X, X[kept])
    np.testing.assert_array_equal(chunk.y, y[kept])
    np.testing.assert_array_equal(chunk.weight, weight[kept])


def test_the_form_is_logged(opened, caplog):
    caplog.set_level(logging.INFO)
    source = opened("a;y\n1,5;2\n")
    expected = f"{source.origin}: 2 columns, delimiter semicolon, a comma in decimals, names in the first row"
    assert caplog.messages == [expected] and source.form.decimal == ","
    assert source.read(0, 1).X.tolist() == [[1.5]]


def test_texts_that_are_recognised_by_their_content(opened):
    for text in ("a,b,y\n1,2,3\n", "\ufeff1\t2\n3\t4\n", "5.1,3.5,Iris-setosa\n" * 500):
        assert type(opened(text, "iris.data")) is DelimitedSource
    assert "the format is unknown" in refusal(opened, "some words\nand more, of\nthem\n", "t.txt")


def test_where_names_lines_of_the_file(opened):
    source = opened("x,part,y\n1,train,0\n\n2,test,1\n3,train,1\n", where={"part": "train"})
    assert source.feature_names == ["x"] and source.read(0, 2).row_numbers.tolist() == [2, 5]
    numbers = opened("x,part,y\n1,1,0\n2,2.0,1\n3,x,1\n")
    assert numbers.read_selector("part", 0, 2).tolist() == ["1", "2.0"]  # text, as the last row has some
    assert numbers.read_selector("x", 0, 3).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": has no rows. Give data that have some."),
        ("\n \n", ": has no rows. Give data that have some."),
        ("a,b\n", ": has names of columns and no rows. Give data that have some."),
        (b"a,b\n1,\x002\n", ": holds binary data, not CSV text. Give the text file."),
        ("a,b\n1,2\n".encode("utf-16"), ": is UTF-16 text. Save it as UTF-8."),
        ("1 1:0.5 2:3\n2 1:1\n", ": is libsvm text, not a table. Give it the suffix .libsvm."),
        ("a,b,c\n1,2,3\n\n1,2\n", ", row 4: has 2 fields; the first row has 3. Correct the row, or quote its fields."),
        (b"a,b\n1,2\n\xff1\n", ", row 3: has 1 field; the first row has 2. Correct the row, or quote its fields."),
        (b"a,\xe9t\xe9\n1,2\n", ", row 1, column 2: b'\\xe9t\\xe9' is not UTF-8 text. Save the file as UTF-8."),
    ],
)
def test_files_that_do_not_open(opened, tmp_path, text, message):
    assert refusal(opened, text) == f"{tmp_path / 't.csv'}{message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'a,b c,y\n1,2,"x\ny"\n3,12 kg,z\n4,5,z\nx,1,z\n',
            ", row 4, column 'b c': '12 kg' is not a number. Encode such columns as numbers, or leave them out "
            "(drop=): --drop 'a,b c'",
        ),
        (
            '"a\nb",y\n1,2\nx,2\n',
            ", row 4, column 'a\\nb': 'x' is not a number. Encode it as numbers, or leave it out (drop=): --drop NAME",
        ),
        (
            "1.5,2,1\n1_0,2,1\n",
            ", row 2, column '1': '1_0' is not a number. Encode it as numbers, or leave it out (drop=): --drop 1",
        ),
        (
            "a,day,b,c c\n1,2020-01-02,2,x\n1,2020-01-02,z,x\n",
            ", row 2, column 'day': '2020-01-02' is not a number. Encode such columns as numbers, or leave them out "
            "(drop=): --drop 'day,b,c c'",
        ),
        (
            "a;b\n1,5;1\n2.5;1\n",
            ", row 2, column 'a': '1,5' is not a number. Write decimals with a point.",
        ),
        (b"a,y\n1,x\n2\xb5,z\n", ", row 3, column 'a': b'2\\xb5' is not UTF-8 text. Save the file as UTF-8."),
    ],
)
def test_fields_that_are_no_numbers(opened, tmp_path, text, message):
    source = opened(text)
    assert refusal(source.read, 0, source.n_rows) == f"{tmp_path / 't.csv'}{message}"


def test_text_that_is_not_utf8_and_a_column_that_is_left_out(opened, tmp_path):
    text = b"a,b,y\n1,\xb5,x\n2,z,\xe9\n"
    message = f"{tmp_path / 't.csv'}, row 3, column 'y': b'\\xe9' is not UTF-8 text. Save the file as UTF-8."
    assert refusal(opened, text) == message
    assert opened(text, drop="b", y_name=None, features="a").read(0, 2).X.tolist() == [[1], [2]]


def test_a_file_that_changes(opened, tmp_path):
    source = opened("a,y\n1,2\n3,4\n")
    message = f"{tmp_path / 't.csv'}: changed after it was opened. Open it again."
    (tmp_path / "t.csv").write_text("a,y\n1,2\n")
    assert refusal(source.read, 0, 2) == message
    source._text.stamp = source._text._current_stamp()
    assert refusal(source.read, 0, 2) == message


def test_a_closed_source_of_a_compressed_file_leaves_nothing(tmp_path):
    import bz2

    (tmp_path / "t.csv.bz2").write_bytes(bz2.compress(b"a,y\n1,2\n"))
    with open_source(tmp_path / "t.csv.bz2") as source:
        text = source._text.path
        assert pickle.loads(pickle.dumps(source)).read(0, 1).X.tolist() == [[1]]
    assert not os.path.exists(text)


def test_pyarrow_is_imported_for_tables_alone_and_named_where_it_is_missing(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,2\n")
    np.savez(tmp_path / "t.npz", X=np.eye(2), y=[0, 1])
    code = (
        "import sys; from linadd.sources import open_source\n"
        "open_source('t.npz').read(0, 2); assert 'pyarrow' not in sys.modules\n"
        "open_source('t.csv').read(0, 1); assert 'pandas' not in sys.modules\n"
        "sys.modules['pyarrow'] = None\n"
        "try: open_source('t.csv')\n"
        "except Exception as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout == "t.csv: needs pyarrow, which is not installed. Install it: pip install 'linadd[tables]'\n"
