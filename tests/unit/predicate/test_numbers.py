"""Numbers: texts that are some and texts that are none, 64 bits, and rounding to single precision once."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routes.predicate import numbers


@pytest.mark.parametrize("text", ["0", "-0", "+5", "007", "9223372036854775807", "-9223372036854775808", "0" * 4000])
def test_digits_with_a_sign_are_an_exact_number(text: str) -> None:
    assert numbers.exact(text) == int(text)


def test_zeros_before_a_number_are_no_part_of_its_size() -> None:
    assert numbers.exact("0" * 100_000 + "5") == 5


@pytest.mark.parametrize(
    "text",
    ["", " 5", "5 ", "5\n", "1_0", "5.0", "5L", "0x5", "+-5", "٥", "9223372036854775808", "1" * 5000, "-"],  # noqa: RUF001
)
def test_all_else_is_none(text: str) -> None:
    assert numbers.exact(text) is None


@pytest.mark.parametrize(
    "text", ["", "08", "0x", "0xG", "5f5", "1__", "_1", "1_.5", "1e", "1e999", "1e-999", "1e40f", "."]
)
def test_what_java_refuses_is_no_literal(text: str) -> None:
    assert numbers.literal(text) is None


def nearest_single(value: Fraction) -> float:
    """By definition: the nearest of the singles around, the one with an even pattern of bits if two are as near."""
    if abs(value) >= Fraction(2) ** 128 - Fraction(2) ** 103:
        return math.copysign(math.inf, value)
    low, high = 0, 0x7F7FFFFF
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if of_bits(middle) <= abs(value) else (low, middle - 1)
    candidates = [bits for bits in (low, low + 1) if bits <= 0x7F7FFFFF]
    best = min(candidates, key=lambda bits: (abs(of_bits(bits) - abs(value)), bits & 1))
    return math.copysign(float(of_bits(best)), value)


def of_bits(bits: int) -> Fraction:
    return Fraction(struct.unpack("<f", struct.pack("<I", bits))[0])


@settings(deadline=None)
@given(st.integers(numbers.LONG_MIN, numbers.LONG_MAX))
def test_a_64_bit_number_becomes_the_nearest_single(value: int) -> None:
    assert numbers.single(value) == nearest_single(Fraction(value))


@settings(deadline=None)
@given(st.integers(2**23, 2**24 - 1), st.sampled_from([0, 1, -1]), st.integers(0, 38))
def test_a_number_beside_the_middle_of_two_singles_is_rounded_once(mantissa: int, off: int, shift: int) -> None:
    middle = ((2 * mantissa + 1) << shift) + off
    assert numbers.single(middle) == nearest_single(Fraction(middle))


@settings(deadline=None)
@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(-60, 60))
def test_a_text_becomes_the_nearest_single(mantissa: Decimal, exponent: int) -> None:
    text = f"{mantissa:f}"[:40].rstrip("-") or "0"
    text = f"{text}e{exponent}"
    found, double = numbers.single_of(text), float(text)
    if double == 0 or math.isinf(double):
        assert found == double
    else:
        assert found == nearest_single(Fraction(text))


def test_exponents_beyond_all_bounds_are_zero_or_infinite() -> None:
    assert numbers.single_of("1e999999999999999999999") == math.inf
    assert numbers.single_of("1e-999999999999999999999") == 0
