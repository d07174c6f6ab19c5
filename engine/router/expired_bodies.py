"""Removal of bodies that were kept as files for long enough: whole days, now and then, beside the routing."""

from __future__ import annotations

import re
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import TYPE_CHECKING

import structlog
from py4j.protocol import Py4JError

from engine.spark.hadoop_path import opened
from engine.spark.stored_files import remove
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from engine.claims.section import ClaimCheckConfig
    from engine.spark.stored_files import Folder

__all__ = ["remove_expired", "removing_expired"]

_INTERVAL_SECONDS = 3600.0
_JOIN_SECONDS = 5.0
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_log = structlog.get_logger(__name__)


@contextmanager
def removing_expired(spark: SparkSession, claims: ClaimCheckConfig) -> Iterator[None]:
    """Removes expired bodies at once and every hour, in a thread, until the context ends.

    A failure is logged and does not disturb the routing: the next attempt finds the same days.
    """
    folder, ended = claims.folder, Event()
    if folder is None:
        yield
        return

    def tend() -> None:
        while not ended.is_set():
            try:
                for day in remove_expired(opened(spark, folder), claims.keep_seconds, datetime.now(UTC), ended):
                    _log.info("bodies kept as files were removed", day=day, folder=str(folder))
            except (BridgeError, OSError, Py4JError) as error:
                _log.warning("expired bodies are not removed yet", folder=str(folder), why=str(error))
            ended.wait(_INTERVAL_SECONDS)

    thread = Thread(target=tend, name="expired-bodies", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_JOIN_SECONDS)


def remove_expired(folder: Folder, keep_seconds: float, now: datetime, ended: Event | None = None) -> Iterator[str]:
    """Removes the days of a folder of bodies that were over `keep_seconds` ago, and yields each; no other entry.

    Nothing is written to such a day any more, so no body of a younger record is in it.
    """
    try:
        days = sorted((path for path in folder.iterdir() if _DAY.fullmatch(path.name)), key=lambda path: path.name)
    except FileNotFoundError:
        return  # No body was kept yet.
    for path in days:
        if (ended is not None and ended.is_set()) or not _is_over(path.name, now - timedelta(seconds=keep_seconds)):
            return
        remove(path)
        yield path.name


def _is_over(day: str, at: datetime) -> bool:
    try:
        return datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(days=1) <= at
    except ValueError:
        return False  # A name such as 2026-99-99 is not of the bridge.
