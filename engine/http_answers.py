"""Answers of HTTP servers, read with a limit of their size and of the time that they take."""

from __future__ import annotations

import time
from http.client import HTTPException, IncompleteRead
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from http.client import HTTPResponse

__all__ = ["LargeAnswerError", "content"]


class LargeAnswerError(HTTPException):
    """An answer has more bytes than its reader takes. The text is a part of a sentence for users."""


def content(answer: HTTPResponse, most_bytes: int, seconds: float) -> bytes:
    """Returns the bytes of an answer, of which the head has been read.

    Raises:
        LargeAnswerError: there are more than `most_bytes`.
        HTTPException: the connection ends before the answer does.
        TimeoutError: it is not complete within `seconds`, however often a part of it comes.
    """
    deadline, pieces, left = time.monotonic() + seconds, list[bytes](), most_bytes
    while piece := answer.read1(left + 1):
        pieces.append(piece)
        left -= len(piece)
        if left < 0:
            raise LargeAnswerError(f"the answer has more than {most_bytes:,} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError(f"it is not complete after {seconds:g} s")
    if answer.length:
        raise IncompleteRead(b"".join(pieces), answer.length)
    return b"".join(pieces)
