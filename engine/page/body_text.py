"""Bodies as the text of a form, which gives them back as they were.

A browser sends each end of a line as CR LF, and takes NUL for another character, so not every text comes back.
"""

from __future__ import annotations

__all__ = ["body_text", "text_body"]


def body_text(body: bytes) -> str | None:
    """Text for a form; None for a body that is not UTF-8, or would not come back as it is."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text or text_body(text, body) != body else _unix(text)


def text_body(text: str, like: bytes = b"") -> bytes:
    """The body that a form's text is, with the ends of lines that another body has."""
    lines = _unix(text)
    return (lines.replace("\n", "\r\n") if b"\r\n" in like else lines).encode("utf-8", "replace")


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
