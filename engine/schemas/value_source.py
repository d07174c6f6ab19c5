"""Reader of the bytes of a value, which takes no length in them for more than the bytes behind it."""

from __future__ import annotations

__all__ = ["INT", "LONG", "InvalidSchemaError", "InvalidValueError", "ValueSource"]

INT, LONG = 32, 64
"""Bits of numbers."""
_MOST_EMPTY_ITEMS = 10_000
"""Items of arrays and maps beyond the bytes of a value (`jmsbridge.Limits.MOST_EMPTY_ITEMS`)."""


class InvalidSchemaError(ValueError):
    """Error for a schema by which no value can be read."""


class InvalidValueError(ValueError):
    """Error for bytes that are not a value of their schema."""


class ValueSource:
    """The bytes of a value, read from its beginning to its end; damaged ones are an InvalidValueError."""

    def __init__(self, content: bytes, at: int) -> None:
        """Creates it at an index of the body, where the value begins."""
        self._content = content
        self._at = at
        self._items = self.left + _MOST_EMPTY_ITEMS

    @property
    def left(self) -> int:
        """Number of the bytes that are not read yet."""
        return len(self._content) - self._at

    def take(self, size: int) -> bytes:
        """Reads the next bytes; raises EOFError if there are fewer."""
        begin = self._at
        if size > self.left:
            raise EOFError
        self._at += size
        return self._content[begin : self._at]

    def number(self, bits: int) -> int:
        """Reads a number in groups of seven bits, of which the lowest says the sign."""
        found, content, offset = 0, self._content, self._at
        for shift in range(0, bits, 7):
            if offset == len(content):
                raise EOFError
            group = content[offset]
            offset += 1
            found |= (group & 0x7F) << shift
            if group < 0x80:
                self._at = offset
                # The last group may say more than there are bits.
                found &= (1 << bits) - 1
                return found >> 1 ^ -(found & 1)
        msg = f"a number in it has more than {bits} bits"
        raise InvalidValueError(msg)

    def sized(self) -> bytes:
        """Reads bytes behind their number."""
        size = self.number(LONG)
        if not 0 <= size <= self.left:
            msg = f"a text or bytes announce {size} bytes, and {self.left} are there"
            raise InvalidValueError(msg)
        return self.take(size)

    def text(self) -> str:
        """Reads a text behind the number of its bytes."""
        content = self.sized()
        try:
            return content.decode()
        except UnicodeDecodeError:
            msg = "a text in it is not UTF-8"
            raise InvalidValueError(msg) from None

    def block(self) -> int:
        """Reads the number of items in the next block of an array or map; 0 at the end."""
        count = self.number(LONG)
        if count < 0:
            # The size of the block in bytes comes next.
            self.number(LONG)
            # The least number has no opposite of 64 bits, and ends the array or map, as in Java.
            count = -count & ((1 << (LONG - 1)) - 1)
        if count > self._items:
            msg = "an array or a map announces more items than the value has bytes"
            raise InvalidValueError(msg)
        self._items -= count
        return count
