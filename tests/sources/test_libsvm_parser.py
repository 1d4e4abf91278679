"""The compiled parser against a plain one of ten lines, and every fault with its line and token."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linadd.sources.libsvm_parser import LibsvmParser


def parse(*blocks, index_base=1, n_features=None, n_rows=1000, n_entries=1000):
    """The parser after the blocks of text, and the first fault."""
    parser = LibsvmParser(index_base, n_features)
    parser.make_room(n_rows, n_entries)
    for block in blocks:
        fault = parser.parse(np.frombuffer(block.encode(), np.uint8))
        if fault:
            return parser, fault
    return parser, None


def parse_plainly(text, index_base):
    """Labels, dense rows as dicts and line numbers: the specification."""
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        tokens = line.split("#")[0].split()
        if tokens:
            entries = [token.split(":") for token in tokens[1:] if not token.startswith("qid:")]
            rows.append((float(tokens[0]), {int(i) - index_base: float(v) for i, v in entries}, number))
    return rows


NUMBERS = st.sampled_from(["1", "-1", "+1", "0.5", "1e3", "-.25", "3.", "nan", "inf", "1e400", "0." + "1234567890" * 2])
ENTRIES = st.lists(st.tuples(st.integers(1, 40), NUMBERS), unique_by=lambda entry: entry[0], max_size=6)
BLANKS = st.sampled_from([" ", "  ", "\t", " \r", "\v"])


@st.composite
def lines(draw):
    kind = draw(st.sampled_from(["row", "row", "row", "blank", "comment"]))
    if kind != "row":
        return draw(BLANKS) * draw(st.integers(0, 1)) + ("# 1:2 3" if kind == "comment" else "")
    query, end = draw(st.sampled_from([[], ["qid:7"]])), draw(st.sampled_from(["", "\r", " # end", "#end"]))
    tokens = [draw(NUMBERS), *query, *(f"{i}:{value}" for i, value in draw(ENTRIES))]
    return draw(BLANKS).join(tokens) + end


@given(st.lists(lines(), max_size=12), st.sampled_from([0, 1]), st.data())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_like_the_plain_parser_in_any_blocks(rows, index_base, data):
    cut = data.draw(st.integers(0, len(rows)))
    blocks = ["".join(line + "\n" for line in part) for part in (rows[:cut], rows[cut:])]
    parser, fault = parse(*(block for block in blocks if block), index_base=index_base)
    assert fault is None
    expected = parse_plainly("".join(blocks), index_base)
    assert parser.n_rows == len(expected) and parser.n_lines == len(rows)
    X = parser.table(slice(0, parser.n_rows), 41).toarray() if expected else []
    for k, (label, entries, number) in enumerate(expected):
        np.testing.assert_array_equal(parser.y[k], label)
        assert parser.lines[k] == number
        np.testing.assert_array_equal(X[k], [entries.get(j, 0.0) for j in range(41)])
    assert parser.width == max([j + 1 for _, entries, _ in expected for j in entries], default=0)


def test_rows_without_labels():
    parser, fault = parse("1:2 3:4\n2:1\n")
    assert fault is None and not parser.has_labels and parser.y[:2].tolist() == [0, 0]
    assert parser.table(slice(0, 2), 3).toarray().tolist() == [[2, 0, 4], [0, 1, 0]]


def test_a_slice_of_rows():
    parser, _ = parse("1 1:1\n1 2:2\n", "1 3:3\n1\n")
    assert parser.table(slice(1, 3), 3).toarray().tolist() == [[0, 2, 0], [0, 0, 3]]
    assert parser.table(slice(3, 4), 3).toarray().tolist() == [[0, 0, 0]]


@pytest.mark.parametrize(
    ("text", "line", "fault"),
    [
        ("1 0:1\n", 1, "index 0 in '0:1' is below the first index, 1. Use --index-base 0 if the file counts from 0."),
        ("1 1:1\n\n1 2:1 2:3\n", 3, "index 2 in '2:3' stands there already. Give each index once a line."),
        ("1 3:1\n1 7:1 3:2 5:1 3:4\n", 2, "index 3 in '3:4' stands there already. Give each index once a line."),
        ("1 1:1_0\n", 1, "'1:1_0' is not INDEX:VALUE. Correct the line."),
        ("1 1:1 a\n", 1, "'a' is not INDEX:VALUE. Correct the line."),
        ("1 1\n", 1, "'1' is not INDEX:VALUE. Correct the line."),
        ("1 1:\n", 1, "'1:' is not INDEX:VALUE. Correct the line."),
        ("1 :1\n", 1, "':1' is not INDEX:VALUE. Correct the line."),
        ("1 1.5:1\n", 1, "'1.5:1' is not INDEX:VALUE. Correct the line."),
        ("1 -1:1\n", 1, "'-1:1' is not INDEX:VALUE. Correct the line."),
        ("1 1:2:3\n", 1, "'1:2:3' is not INDEX:VALUE. Correct the line."),
        ("1 1:1 2:x\n", 1, "'2:x' is not INDEX:VALUE. Correct the line."),
        ("1 1:1\n1 1:1,5 2:0\n", 2, "'1:1,5' is not INDEX:VALUE. Correct the line."),
        ("1 1:1 qid:3\n", 1, "'qid:3' is not INDEX:VALUE. Correct the line."),
        ("1 q\n", 1, "'q' is not INDEX:VALUE. Correct the line."),
        ("1 9999999999999999999:1\n", 1, "'9999999999999999999:1' is not INDEX:VALUE. Correct the line."),
        ("1 1:" + "x" * 99 + "\n", 1, f"'1:{'x' * 38}' is not INDEX:VALUE. Correct the line."),
        ("1 1:\xff\n", 1, "'1:\xff' is not INDEX:VALUE. Correct the line."),
        ("cat 1:1\n", 1, "label 'cat' is not a number. Number the classes, as in 1, 2, 3."),
        ("1,2 1:1\n", 1, "label '1,2' is not a number. Number the classes, as in 1, 2, 3."),
        (
            f"{2**53 - 1} 1:1\n{2**53 + 1} 1:1\n",
            2,
            f"label '{2**53 + 1}' is too large to be exact in float64. Number the classes, as in 1, 2, 3.",
        ),
        (
            "-1e300 1:x\ncat 1:1\n",
            1,
            "label '-1e300' is too large to be exact in float64. Number the classes, as in 1, 2, 3.",
        ),
        ("1 1:1\n2:1\n", 2, "'2:1' is no label, unlike the lines before. Label every line, or none."),
        ("1:1\n2 2:1\n", 2, "'2' is a label, unlike the lines before. Label every line, or none."),
        # The first faulty line is named, whichever step finds it.
        ("1 1:x\ncat 1:1\n1 0:1\n", 1, "'1:x' is not INDEX:VALUE. Correct the line."),
        ("1 1:1\ncat 1:x\n1 0:1\n", 2, "label 'cat' is not a number. Number the classes, as in 1, 2, 3."),
        ("1 1:x 1:1\n", 1, "'1:x' is not INDEX:VALUE. Correct the line."),
        ("1 1:1 1:1\n1 1:x\n", 1, "index 1 in '1:1' stands there already. Give each index once a line."),
        ("1 1:x\n1 1:1 1:1\n", 1, "'1:x' is not INDEX:VALUE. Correct the line."),
    ],
)
def test_faults(text, line, fault):
    parser, found = parse(text)
    assert (parser.n_lines, found) == (line, fault)


def test_faults_of_base_and_width():
    assert parse("1 0:1\n", index_base=0)[1] is None
    fault = "index 0 in '0:1' stands there already. Give each index once a line."
    assert parse("1 0:1 0:1\n", index_base=0)[1] == fault
    assert parse("1 3:1\n", n_features=3)[1] is None
    assert parse("1 4:1\n", n_features=3)[1] == "index 4 in '4:1' is beyond the last one, 3. Is it the right file?"
    fault = "index 3 in '3:1' is beyond the last one, 2. Is it the right file?"
    assert parse("1 3:1\n", n_features=3, index_base=0)[1] == fault


def test_line_numbers_go_on_over_blocks():
    parser, fault = parse("1 1:1\n# two\n", "\n1 1:1\n1 0:1\n")
    assert parser.n_lines == 5 and fault.startswith("index 0 in '0:1'")


def test_nothing_is_written_beyond_the_room():
    fault = "is more than there was at the first look. Open the file again."
    assert parse("1 1:1\n2 1:1\n", n_rows=1)[1] == fault
    parser, found = parse("1 1:1 2:1\n", n_entries=1)
    assert found == fault and parser.n_entries == 1


def test_lines_in_any_order_are_sorted_block_by_block():
    parser, fault = parse("1 1:1 3:2\n", "2 9:1 4:2 5:3\n3\n4 2:1 1:2\n", "5 6:1 7:2\n")
    assert fault is None and not parser.is_sorted and parser.width == 9
    X = parser.table(slice(0, 5), 9)
    assert X.indices.tolist() == [0, 2, 3, 4, 8, 0, 1, 5, 6]
    assert X.data.tolist() == [1, 2, 2, 3, 1, 2, 1, 1, 2] and X.has_canonical_format
    assert parse("1 1:1 3:2\n2 2:1\n")[0].is_sorted


def test_room_is_used_again():
    parser, _ = parse("1 1:1\n2 1:2\n")
    values = parser.values
    parser.make_room(10, 10)
    parser.parse(np.frombuffer(b"3 2:5\n", np.uint8))
    assert parser.values is values and parser.n_rows == 1
    assert parser.table(slice(0, 1), 2).toarray().tolist() == [[0, 5]]
