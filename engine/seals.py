"""Seals, by which the bridge tells its own records and notes from those of others who may write to its topics.

A seal is a digest that nobody can make without a key. All keys of a bridge are derived from one secret (HKDF, RFC
5869): `bridge.secret`, or the one that the router makes at its first start and keeps in its checkpoint
(`engine.router.secret`). The secret is never in Kafka, in a log or on a command line. See docs/adr/0032-seals.md.
"""

from __future__ import annotations

import hmac
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


__all__ = ["SealKeys", "configured_keys", "keys_of_files", "stored_secret"]

_SALT = b"jms-bridge seals 1"
_RECORD_KEY_BYTES = 16
_STORED = re.compile(r"[0-9a-f]{64}")
_ID_DIGITS = 16


@dataclass(frozen=True, slots=True)
class SealKeys:
    """Keys of one bridge, derived from its secret."""

    _secret: bytes = field(repr=False)
    bridge_id: str
    is_shared: bool = False
    """True for keys of `bridge.secret`, which all hosts of a bridge know."""

    @property
    def id(self) -> str:
        """Public name of the secret, by which a later run finds out whether it has the same."""
        return self._derived("id").hex()[:_ID_DIGITS]

    def of_records(self, journal: str, journal_id: str) -> bytes:
        """Key of published records, 16 bytes, for `jmsbridge.kafka.Seal`.

        `journal_id` is Kafka's id of the journal: positions in a journal that was made anew are others.
        """
        return self._derived("records", journal, journal_id)[:_RECORD_KEY_BYTES]

    def of_positions(self) -> bytes:
        """Key of the positions that sinks keep at their brokers, 32 bytes."""
        return self._derived("positions")

    def seal(self, purpose: str, fields: Mapping[str, Any]) -> str:
        """Seal of fields that can be written as JSON; `purpose` tells apart fields with other meanings."""
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hmac.digest(self._derived("fields", purpose), text.encode(), "sha256").hex()

    def holds(self, seal: object, purpose: str, fields: Mapping[str, Any]) -> bool:
        """Returns True if `seal` is the seal of the fields; False for any other text or value."""
        return isinstance(seal, str) and hmac.compare_digest(seal.encode(), self.seal(purpose, fields).encode())

    def _derived(self, *what: str) -> bytes:
        """A key for one use: HKDF with SHA-256, whose first block suffices."""
        extracted = hmac.digest(_SALT, self._secret, "sha256")
        info = json.dumps([self.bridge_id, *what]).encode()
        return hmac.digest(extracted, info + b"\x01", "sha256")


def configured_keys(bridge_id: str, secret: str | None) -> SealKeys | None:
    """Keys from `bridge.secret`; None if `secret` is, since the key is not set."""
    return SealKeys(secret.encode(), bridge_id, is_shared=True) if secret else None


def stored_secret(text: str) -> bytes | None:
    """The secret in the content of a checkpoint's file `secret`; None if the content has another form."""
    return bytes.fromhex(text.strip()) if _STORED.fullmatch(text.strip()) else None


def keys_of_files(bridge_id: str, secret: str | None, checkpoint: Path | str) -> tuple[SealKeys, ...]:
    """Keys that a process other than the router knows: of `bridge.secret`, and of a checkpoint on a local disk.

    None before the router's first start, or if this user may not read the checkpoint.
    """
    shared = configured_keys(bridge_id, secret)
    keys = () if shared is None else (shared,)
    if not isinstance(checkpoint, Path):
        return keys
    try:
        stored = stored_secret((checkpoint / "secret").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return keys
    return keys if stored is None else (*keys, SealKeys(stored, bridge_id))
