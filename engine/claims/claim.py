"""Claim on a body that is kept as a file: the header of a record with an empty value, which says where its body is."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engine.record import POSITION
from routes.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CLAIM", "Claim"]

CLAIM = "jmsbridge.claim"
"""Header of published records: file of the body, a blank, and its size in bytes. It counts only beside an empty value
and behind the last `jmsbridge.position`: there it is the router's, and not one that came with the message."""

_FORM = re.compile(r"(\d{4}-\d{2}-\d{2})/([0-9a-f]{64}) (\d{1,12})", re.ASCII)


@immutable
class Claim:
    """Claim on a body. It names no folder: who redeems it knows that."""

    day: str
    """Day of UTC on which the body was kept, as `2026-11-28`: the folder of the file."""
    digest: str
    """SHA-256 of the body in hexadecimal: the name of the file."""
    size: int
    """Size of the body in bytes."""

    @classmethod
    def of(cls, headers: Iterable[tuple[str, bytes | None]]) -> Claim | None:
        """The claim that the router gave to a record; None for a record that has its body.

        Raises:
            ValueError: the header has another form than the router gives it.
        """
        found: bytes | None = None
        for name, value in headers:
            if name == POSITION:
                found = None
            elif name == CLAIM:
                found = value or b""
        if found is None:
            return None
        text = found.decode("utf-8", "replace")
        match = _FORM.fullmatch(text)
        if match is None:
            msg = f"its header {CLAIM} is not a claim on a body: {text[:100]!r}"
            raise ValueError(msg)
        return cls(match[1], match[2], int(match[3]))

    @classmethod
    def on(cls, body: bytes) -> Claim:
        """The claim that the router would give for a body today."""
        return cls(datetime.now(UTC).date().isoformat(), hashlib.sha256(body).hexdigest(), len(body))

    @property
    def file(self) -> str:
        """Path of the file in the folder of bodies."""
        return f"{self.day}/{self.digest}"

    def __str__(self) -> str:
        return f"{self.file} {self.size}"

    def fits(self, body: bytes) -> bool:
        """True if it is the claim on this body."""
        return len(body) == self.size and hashlib.sha256(body).hexdigest() == self.digest
