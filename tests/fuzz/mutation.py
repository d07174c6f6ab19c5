"""Wrong inputs made of right ones: bytes flipped, cut, repeated, and put together from several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

__all__ = ["mutated"]

_INTERESTING = tuple(
    number.to_bytes(width)
    for width in (1, 2, 4, 8)
    for number in (0, 1, 0x7F, (1 << (8 * width - 1)) - 1, 1 << (8 * width - 1), (1 << (8 * width)) - 1)
)
_WORDS = (
    *(
        b"\0",
        b"\r\n",
        b"\n\n",
        b"\xff",
        b"\xed\xa0\x80",
        b"..",
        b"/",
        b"%",
        b"%00",
        b"\\",
        b"'",
        b'"',
        b"(" * 60,
        b"NOT ",
    ),
    *(
        b"9" * 400,
        b"-1",
        b"1e999",
        b"NaN",
        b"[" * 100,
        b"{" * 100,
        b"${",
        b"=",
        b":",
        b",",
        b";",
        b"\x45",
        b"\xc0",
        b"\xf0",
    ),
)
_MOST_CHANGES = 6


def mutated(random: Random, seeds: Sequence[bytes], most_bytes: int) -> bytes:
    """An input made of one or two seeds."""
    data = bytearray(random.choice(seeds))
    for _ in range(random.randint(0, _MOST_CHANGES)):
        random.choice(_CHANGES)(random, data, seeds)
    return bytes(data[:most_bytes])


def _flip(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _overwrite(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    value = random.choice(_INTERESTING)
    at = _place(random, data)
    data[at : at + len(value)] = value


def _insert(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = _place(random, data)
    data[at:at] = random.choice((random.choice(_WORDS), random.randbytes(random.randint(1, 8))))


def _cut(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = _place(random, data)
    del data[at : at + random.randint(1, len(data) or 1)]


def _repeat(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = _place(random, data)
    data[at:at] = data[at : at + random.randint(1, 40)] * random.randint(1, 20)


def _splice(random: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    other = random.choice(seeds)
    data[_place(random, data) :] = other[random.randint(0, len(other)) :]


def _place(random: Random, data: bytearray) -> int:
    return random.randint(0, len(data))


_CHANGES: tuple[Callable[[Random, bytearray, Sequence[bytes]], None], ...] = (
    _flip,
    _overwrite,
    _insert,
    _cut,
    _repeat,
    _splice,
)
