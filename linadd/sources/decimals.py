"""Decimal text to float64 in compiled code, correctly rounded, so equal to what Python's `float` gives.

Up to 2^53 and 10^22 one exact multiplication or division rounds once (W. D. Clinger, How to read floating point numbers
accurately, 1990). Longer numbers, to 19 digits and exponents within 64, take the 128-bit product of D. Lemire, Number
parsing at a gigabyte per second, Software: Practice and Experience 51(8), 2021, sections 5 and 8. What is left (more
digits, larger exponents, nan, infinity, anything malformed) is for the caller to hand to `float`.
"""

import numpy as np

from linadd._jit import compiled

__all__ = ["ends_token", "is_blank", "is_digit", "parse_decimals"]

MAX_DIGITS = 19  # the most that always fit an unsigned 64-bit integer
MAX_POWER = 64
EXACT_POWERS = 10.0 ** np.arange(23)  # the powers of ten that float64 holds exactly


def power_of_five(exponent):
    """The leading 128 bits of 5^exponent, truncated; rounded up from -27 to -1 (Lemire 2021, section 5)."""
    if exponent >= 0:
        power = 5**exponent
        return power << 128 - power.bit_length() if power.bit_length() <= 128 else power >> power.bit_length() - 128
    power = 5**-exponent
    return (1 << power.bit_length() + 127) // power + (exponent >= -27)


FIVES = [power_of_five(exponent) for exponent in range(-MAX_POWER, MAX_POWER + 1)]
HIGH_FIVES = np.array([power >> 64 for power in FIVES], np.uint64)
LOW_FIVES = np.array([power & 0xFFFFFFFFFFFFFFFF for power in FIVES], np.uint64)


@compiled
def parse_decimals(text, starts, values, left):
    """Read the number of each token: [+-] digits [. digits] [e [+-] digits].

    One loop without calls that take arrays: numba counts references at each of them, which took two thirds of the time.

    Parameters
    ----------
    text : array, uint8
        ASCII, ending in a byte that ends a token.
    starts : array, int64
        Positions of the first bytes of the tokens.
    values : array, float64, as long as `starts`
        Receives the numbers, correctly rounded.
    left : array, int64, as long as `starts`
        Receives the places in `starts` of the tokens that are no such number or need more than is handled here.

    Returns
    -------
    int
        How many are left.
    """
    n_left = 0
    for k in range(len(starts)):
        i = starts[k]
        is_negative = text[i] == 45
        i += is_negative or text[i] == 43
        first, point = i, -1
        mantissa, n_digits = np.uint64(0), 0  # significant digits
        while is_digit(text[i]) or (text[i] == 46 and point < 0):
            if text[i] == 46:
                point = i
            else:
                if n_digits < MAX_DIGITS:
                    mantissa = mantissa * np.uint64(10) + np.uint64(text[i] - 48)
                n_digits += mantissa > np.uint64(0)
            i += 1
        is_number = i - first > (point >= 0)
        exponent = point + 1 - i if point >= 0 else 0
        if text[i] == 101 or text[i] == 69:
            i += 1
            is_small = text[i] == 45
            i += is_small or text[i] == 43
            is_number = is_number and is_digit(text[i])
            written = 0
            while is_digit(text[i]):
                written = min(written * 10 + np.int64(text[i]) - 48, 10000)  # beyond MAX_POWER, far from an overflow
                i += 1
            exponent += -written if is_small else written
        if not (is_number and ends_token(text[i]) and n_digits <= MAX_DIGITS and abs(exponent) <= MAX_POWER):
            left[n_left] = k
            n_left += 1
            continue
        value = np.float64(mantissa)
        if mantissa > np.uint64(1 << 53) or abs(exponent) > 22:
            value = scale(mantissa, exponent)
        elif exponent < 0:
            value /= EXACT_POWERS[-exponent]
        else:
            value *= EXACT_POWERS[exponent]
        values[k] = -value if is_negative else value
    return n_left


@compiled
def is_digit(byte):
    """Whether a byte is a decimal digit."""
    return 48 <= byte <= 57


@compiled
def is_blank(byte):
    """Whether a byte is white space within a line; a newline is not."""
    return byte == 32 or byte == 9 or 11 <= byte <= 13


@compiled
def ends_token(byte):
    """Whether a byte is white space, a newline or the # of a comment."""
    return byte == 32 or 9 <= byte <= 13 or byte == 35


@compiled
def scale(mantissa, exponent):
    """mantissa * 10^exponent by a 128-bit product (Lemire 2021, algorithm 1); the result is zero or a normal number."""
    if mantissa == np.uint64(0):
        return 0.0
    one = np.uint64(1)
    shift = 0
    while mantissa < np.uint64(1 << 63):
        mantissa <<= one
        shift += 1
    high, low = multiply(mantissa, HIGH_FIVES[exponent + MAX_POWER])
    # 55 bits are needed; if all bits below them are ones, a carry from the lower half of the power may reach them.
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        carry, _ = multiply(mantissa, LOW_FIVES[exponent + MAX_POWER])
        if low > np.uint64(0xFFFFFFFFFFFFFFFF) - carry:
            high += one
            low -= np.uint64(0xFFFFFFFFFFFFFFFF) - carry + one
        else:
            low += carry
    upper = high >> np.uint64(63)
    drop = upper + np.uint64(9)
    bits = high >> drop
    # Exactly half-way to the next number: the tie goes to the even one. It can happen for these powers only.
    is_tie = low <= one and -4 <= exponent <= 23 and bits & np.uint64(3) == one and bits << drop == high
    if is_tie:
        bits -= one
    bits = (bits + (bits & one)) >> one
    # floor(log2(10^exponent)) by a fixed-point multiple of log2(10), exact in this range.
    power = ((217706 * exponent) >> 16) + 63 + np.int64(upper) - shift - 52
    return np.ldexp(np.float64(bits), power)


@compiled
def multiply(a, b):
    """The high and low 64 bits of a * b, by halves; no intermediate exceeds 64 bits."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_high, a_low, b_high, b_low = a >> half, a & mask, b >> half, b & mask
    low = a_low * b_low
    middle = a_high * b_low + (low >> half)
    cross = a_low * b_high + (middle & mask)
    return a_high * b_high + (middle >> half) + (cross >> half), (cross << half) | (low & mask)
