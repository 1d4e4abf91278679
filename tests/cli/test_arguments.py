"""The parsers of sizes, conditions and numbers."""

import pytest
import typer

from linadd.cli.arguments import parse_integer, parse_number, parse_size, parse_where
from linadd.cli.training_options import parse_class_weight, parse_label, parse_partial_solutions
from linadd.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [
        ("200MB", 200 * 10**6), ("1GB", 10**9), ("1.5GiB", 3 * 2**29), ("64k", 64_000), ("64KiB", 65_536),
        (" 7 mb ", 7 * 10**6), ("4096", 4096), ("4096B", 4096), ("2T", 2 * 10**12), (4096, 4096),
    ],
)  # fmt: skip
def test_sizes(text, n_bytes):
    assert parse_size(text) == n_bytes


@pytest.mark.parametrize("text", ["", "MB", "1 2MB", "-1MB", "1XB", "1e9", "nan"])
def test_what_is_no_size_is_quoted(text):
    with pytest.raises(typer.BadParameter) as caught:
        parse_size(text)
    assert caught.value.message == f"{text!r} is not a size. Write it as 200MB, 1.5GiB or a number of bytes."


def test_conditions():
    assert parse_where(None) is None and parse_where([]) is None
    assert parse_where(["part=1,2", "sex=f", "part=5"]) == {"part": ["1", "2", "5"], "sex": ["f"]}
    assert parse_where(["a=b=c"]) == {"a": ["b=c"]}
    for text in ("part", "=1", "part="):
        with pytest.raises(ConfigError) as caught:
            parse_where([text])
        assert str(caught.value) == f"--where {text}: is not NAME=V1,V2."


def test_numbers():
    assert (parse_integer("12"), parse_number("1e-3"), parse_integer(3), parse_number(0.5)) == (12, 1e-3, 3, 0.5)
    with pytest.raises(typer.BadParameter, match=r"^'1\.5' is not an integer\.$"):
        parse_integer("1.5")
    with pytest.raises(typer.BadParameter, match=r"^'much' is not a number\.$"):
        parse_number("much")


def test_a_config_file_holds_no_other_kind_of_number():
    for value in (5.5, True):
        with pytest.raises(typer.BadParameter, match=f"^{value!r} is not an integer\\.$"):
            parse_integer(value)
    with pytest.raises(typer.BadParameter, match=r"^True is not a number\.$"):
        parse_number(True)


def test_class_weights():
    assert parse_class_weight("balanced") == "balanced" and parse_class_weight(None) is None
    assert parse_class_weight("0=1,-1=2.5,+3=2,no=4,a=b=5") == {0: 1.0, -1: 2.5, 3: 2.0, "no": 4.0, "a=b": 5.0}
    assert parse_class_weight({"a": 2}) == {"a": 2}
    assert [parse_label(text) for text in ("1.0", "0.5", "x1")] == [1, 0.5, "x1"]
    for part in ("3", "=2", "3=", "3=x"):
        with pytest.raises(typer.BadParameter) as caught:
            parse_class_weight(f"0=1,{part}")
        assert caught.value.message == f"{part!r} is not LABEL=WEIGHT. Write it as 0=1,1=2.5, or balanced."
    with pytest.raises(typer.BadParameter) as caught:
        parse_class_weight("0=1,0.0=3")
    assert caught.value.message == "'0.0=3' is a second weight of the class 0.0. Give each class one."


def test_partial_solutions():
    assert [parse_partial_solutions(value) for value in ("auto", "3", 2)] == ["auto", 3, 2]
    with pytest.raises(typer.BadParameter, match=r"^'-1' is not auto or a number\.$"):
        parse_partial_solutions("-1")
