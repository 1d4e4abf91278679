"""The form of a text table: delimiters, decimal marks and names as people write them, and what is in doubt."""

import pytest

from linadd.sources.delimited_form import find_form, is_number
from tests.checks.check_source import refusal


@pytest.mark.parametrize(
    ("text", "delimiter", "decimal", "names"),
    [
        ("a,b\n1,2\n", ",", ".", ["a", "b"]),
        ("1,2\n3,4\n", ",", ".", None),
        ("a\tb\n1,5\t2\n", "\t", ",", ["a", "b"]),
        ("a;b\n1,5;2,25\n3;4\n", ";", ",", ["a", "b"]),
        ("1,5;2,5\n1,5;2,5\n", ";", ",", None),
        ("a|b\n1.5|2\n", "|", ".", ["a", "b"]),
        ("1 2\n3 4\n", " ", ".", None),
        ("5.1,3.5,Iris-setosa\n4.9,3.0,Iris-setosa\n", ",", ".", None),
        ("5.1,3.5,kind\n4.9,3.0,Iris-setosa\n", ",", ".", None),
        ("length,width,kind\n4.9,3.0,Iris-setosa\n", ",", ".", ["length", "width", "kind"]),
        (",x, y \n0,1,2\n", ",", ".", ["Unnamed: 0", "x", "y"]),
        ("when,x\n2020-01-01 10:00,1\n2020-01-02 10:00,2\n", ",", ".", ["when", "x"]),
        ("name;x\na,b;1,500\nc,d;0,250\n", ";", ",", ["name", "x"]),
        ('"a, b";c\n1;2\n', ";", ".", ["a, b", "c"]),
        ('"a\nb",c\n1,2\n', ",", ".", ["a\nb", "c"]),
        ("0,1,2,3\n.5,.25,1,0\n", ",", ".", ["0", "1", "2", "3"]),
        ("1,2,3,kind\n.5,.25,1,cat\n", ",", ".", ["1", "2", "3", "kind"]),
        ("0,1\n.5,.25\n", ",", ".", None),
        ("x,y\nNA,?\n1,2\n", ",", ".", ["x", "y"]),
        ("x,y\n,\n", ",", ".", ["x", "y"]),
        ("x,y\n", ",", ".", ["x", "y"]),
        ("1,2\n", ",", ".", None),
        ("x\n1.5\n2\n", ",", ".", ["x"]),
        ("1.5\n", ",", ".", None),
        ("x;y\n1,5;a.b\n", ";", ",", ["x", "y"]),
        ("a,b\n" + "1,2\n" * 50 + "1,2,3\n", ",", ".", ["a", "b"]),
    ],
)
def test_forms(text, delimiter, decimal, names):
    form = find_form(text, "t.csv")
    assert (form.delimiter, form.decimal, form.names) == (delimiter, decimal, names)


def test_a_form_in_words():
    assert find_form("a;b\n1,5;2\n", "").describe() == (
        "2 columns, delimiter semicolon, a comma in decimals, names in the first row"
    )
    assert find_form("1\t2\n", "").describe() == "2 columns, delimiter tab, a point in decimals, no row of names"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a\n1,5\n2,5\n",
            "t.csv: no delimiter splits its rows evenly: a comma splits its first 3 rows into 1 to 2 fields. Write "
            "every row with as many fields as the first.",
        ),
        ("a;b\n1,500;1\n2,250;3\n", "t.csv: '1,500' may be 1.500 or 1500. Write numbers with a decimal point."),
        (
            '"' + "x\n" * 200_000,
            "t.csv: its first row has a field of more than 131072 characters. Close its quote.",
        ),
        (" 1  2\n 3 14\n", "t.csv: its columns are aligned by spaces. Write one delimiter between two fields."),
    ],
)
def test_forms_in_doubt(text, message):
    assert refusal(find_form, text, "t.csv") == message


def test_numbers_are_those_of_float():
    for text in ("1", "-1.5e-3", "+.5", "5.", " 7 ", "inf", "nan", "1e400"):
        assert is_number(text)
    for text in ("", "1_0", "0x10", "1,5", "1.5.2", "--1", "one"):
        assert not is_number(text)
    assert is_number("1,5", ",") and is_number("2", ",") and not is_number("1.5", ",") and not is_number("1.000,5", ",")
