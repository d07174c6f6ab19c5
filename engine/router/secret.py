"""Secret of a router without `bridge.secret`: random, made at the first start, kept in the checkpoint folder.

    <checkpoint>/secret           64 hexadecimal digits, readable by the bridge's user alone

A router that finds the checkpoint of the last run finds its secret, too. One on another machine, with a checkpoint of
its own, does not, and cannot tell the last run's records from those of others: there `bridge.secret` is needed.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from engine.private import make_folder
from engine.seals import SealKeys, configured_keys, stored_secret
from engine.spark.stored_files import write

if TYPE_CHECKING:
    from engine.spark.stored_files import Folder

__all__ = ["known_keys", "present_keys"]

_BYTES = 32
_log = structlog.get_logger(__name__)


def known_keys(bridge_id: str, secret: str | None, root: Folder) -> tuple[SealKeys, ...]:
    """Keys that this router knows, those of the next run first; none before the first start without a `secret`."""
    stored = _stored(root)
    sets = (configured_keys(bridge_id, secret), SealKeys(stored, bridge_id) if stored else None)
    return tuple(keys for keys in sets if keys is not None)


def present_keys(bridge_id: str, secret: str | None, root: Folder) -> tuple[SealKeys, ...]:
    """Keys as `known_keys` gives them; makes a secret if there is none.

    To be called while the checkpoint's lock is held.
    """
    if not (keys := known_keys(bridge_id, secret, root)):
        if isinstance(root, Path):
            make_folder(root)
        write(root / "secret", secrets.token_hex(_BYTES))
        keys = known_keys(bridge_id, secret, root)
    return keys


def _stored(root: Folder) -> bytes | None:
    """The secret in the checkpoint; None if there is none, or the file holds something else."""
    path = root / "secret"
    try:
        secret = stored_secret(path.read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return None
    if secret is None:
        _log.error("the secret in the checkpoint is damaged: another one takes its place", file=str(path))
    return secret
