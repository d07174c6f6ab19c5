"""Seals of position messages, by which a sink tells its own messages in a position queue from those of others.

The text of a position is followed by ` #` and a digest of the message's name and that text (HMAC-SHA256, 128 bits as
hexadecimal digits), with a key that is derived from the bridge's secret (`engine.seals`). `Positions.java` writes and
checks the same. See docs/adr/0032-seals.md.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from engine.seals import keys_of_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["PositionSeals", "position_keys", "text_of"]

_MARK = " #"
_DIGEST_BYTES = 16


def position_keys(bridge_id: str, secret: str | None, checkpoint: Path | str) -> tuple[bytes, ...]:
    """Keys of position seals, 32 bytes each, the one to write with first; none while the bridge's secret is not known.

    The router makes a secret at its first start, and a sink on another host may never know it.
    """
    known = keys_of_files(bridge_id, secret, checkpoint)
    return tuple(keys.of_positions() for keys in known)


class PositionSeals:
    """Seals of one sink's positions."""

    def __init__(self, keys: Callable[[], tuple[bytes, ...]] = tuple) -> None:
        """Sets up the seals; `keys` is asked, as `position_keys`, until there are any."""
        self._ask = keys
        self._keys: tuple[bytes, ...] = ()

    @property
    def are_known(self) -> bool:
        """True if the sink can make and check seals; without keys it believes each position."""
        self._keys = self._keys or self._ask()
        return bool(self._keys)

    def sealed(self, name: str, text: str) -> str:
        """Returns the text of a position with its seal, or as it is while there is no key."""
        return f"{text}{_MARK}{_digest(self._keys[0], name, text)}" if self.are_known else text

    def holds(self, name: str, sealed: str) -> bool:
        """Returns True if a text has the seal of the bridge for a message of that name, or there is no key."""
        text, _, seal = sealed.partition(_MARK)
        given = seal.encode(errors="replace")
        return not self.are_known or any(
            hmac.compare_digest(given, _digest(key, name, text).encode()) for key in self._keys
        )


def text_of(sealed: str) -> str:
    """Returns the text of a position without its seal, if it has one."""
    return sealed.partition(_MARK)[0]


def _digest(key: bytes, name: str, text: str) -> str:
    return hmac.digest(key, f"{name}\n{text}".encode(errors="replace"), "sha256")[:_DIGEST_BYTES].hex()
