"""Content of a Kafka record as a value, whatever it means to those who write and read it."""

from __future__ import annotations

import hashlib

from routes.immutable import immutable

__all__ = ["LONGEST_KEY", "ORIGIN", "POSITION", "SEAL", "Record", "key_text"]

LONGEST_KEY = 1024
"""Longest text, in characters, that is the key of a journal record as it is, see `key_text`."""

ORIGIN = "jmsbridge.origin"
"""Header of published records: `bridge.id` of a bridge that routed the message; one header for each bridge that the
message passed through."""
POSITION = "jmsbridge.position"
"""Header of published records: `topic:partition:offset` of the record that it was made from; `:1`, `:2` and so on are
behind it for the further copies of a message with several publications."""

SEAL = "jmsbridge.seal"
"""Header of published records that only the router can make: the run, and a digest over run, position and topic."""


def key_text(text: str) -> str:
    """Returns a text that stands for another one as a key: itself, or `sha256:…` if it is longer than LONGEST_KEY."""
    if len(text) <= LONGEST_KEY:
        return text
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"


@immutable
class Record:
    """Content of a Kafka record, without topic, partition and offset."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    def header(self, name: str) -> str | None:
        """Returns the first header called `name` as text; None if there is none, or if it has no value.

        Bytes that are not UTF-8 become U+FFFD.
        """
        for key, value in self.headers:
            if key == name:
                return None if value is None else value.decode("utf-8", "replace")
        return None

    @property
    def size(self) -> int:
        """Bytes of key, value and headers, without Kafka's own framing."""
        headers = sum(len(name.encode()) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers
