"""Compiled decimals equal Python's `float`, which is their slow twin, bit for bit."""

import struct

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from linadd.sources.decimals import MAX_POWER, parse_decimals


def parse(texts):
    """float64 of each text, None where the compiled code leaves it to `float`."""
    encoded = [text.encode() for text in texts]
    starts = np.cumsum([0] + [len(text) + 1 for text in encoded[:-1]])
    values, left = np.full(len(texts), 7.0), np.zeros(len(texts), np.int64)
    n_left = parse_decimals(np.frombuffer(b" ".join(encoded) + b"\n", np.uint8), starts, values, left)
    left = set(left[:n_left].tolist())
    return [None if k in left else value for k, value in enumerate(values.tolist())]


def bits(value):
    return struct.pack("d", value)


def assert_like_float(texts, all_done=False):
    for text, value in zip(texts, parse(texts), strict=True):
        if value is None:
            assert not all_done, text
        else:
            assert bits(value) == bits(float(text)), text


DIGITS = st.text("0123456789", min_size=1, max_size=25)


@given(
    sign=st.sampled_from(["", "-", "+"]),
    whole=DIGITS | st.just(""),
    fraction=DIGITS | st.none(),
    exponent=st.integers(-400, 400) | st.none(),
)
@settings(max_examples=500, deadline=None, derandomize=True)
def test_any_number_is_like_float_or_left(sign, whole, fraction, exponent):
    text = sign + whole + ("" if fraction is None else "." + fraction) + ("" if exponent is None else f"e{exponent}")
    try:
        float(text)
    except ValueError:
        assert parse([text]) == [None]
    else:
        assert_like_float([text])


@given(st.text("0123456789+-.eEnaif_x", min_size=1, max_size=8))
@example("1e")
@example(".")
@example("-.e1")
@example("1_0")
@settings(deadline=None, derandomize=True)
def test_no_text_is_taken_that_float_refuses(text):
    value = parse([text])[0]
    assert value is None or bits(value) == bits(float(text))


@given(st.integers(0, 2**64 - 1), st.integers(-MAX_POWER, MAX_POWER))
@example(0, 0)
@example(2**53, 22)
@example(2**53 + 1, -22)
@example(9007199254740993, 0)  # half-way between two numbers: the even one
@example(10**19 - 1, MAX_POWER)
@example(6052924272691064811, -18)  # rounded right only by the lower half of the power of five
@example(2691506134796951301, 49)
@example(9444598087204923536, -54)
@settings(max_examples=1000, deadline=None, derandomize=True)
def test_mantissa_and_exponent(mantissa, exponent):
    assert_like_float([f"{mantissa}e{exponent}", f"-{mantissa}E{exponent:+d}"], all_done=mantissa < 10**19)


@given(st.floats(1e-40, 1e40), st.integers(-3, 3))
@settings(max_examples=1000, deadline=None, derandomize=True)
def test_printed_numbers_and_half_way_points(value, power):
    assert_like_float([repr(value), f"{value:.17g}", f"{value:.9g}"], all_done=True)
    mantissa = struct.unpack("q", struct.pack("d", value))[0] & (2**52 - 1) | 2**52
    half = 2 * mantissa + 1  # 54 bits: exactly between two float64
    assert_like_float([f"{half}e{power}", f"{half - 1}.9", f"{half}.1"], all_done=True)
    assert_like_float([f"{half}0e-1", f"{half}00e-2", f"{half}.0"], all_done=True)


def test_what_ends_a_token():
    text = np.frombuffer(b"1 2\t3\r4#5x\n", np.uint8)
    values, left = np.zeros(5), np.zeros(5, np.int64)
    n_left = parse_decimals(text, np.array([0, 2, 4, 6, 8]), values, left)
    assert left[:n_left].tolist() == [4] and values[:4].tolist() == [1, 2, 3, 4]


def test_leading_zeros_and_long_numbers():
    texts = ["0" * 30 + "1.5", "0." + "0" * 30 + "1", "1" * 19, "1" * 20, "0e999", "1e65", "1e-65"]
    done = [value is not None for value in parse(texts)]
    assert done == [True, True, True, False, False, False, False]
    assert_like_float(texts)
