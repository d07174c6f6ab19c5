"""Tells the JVM until when it may publish: that of a router which leads no more must not, whatever it is doing.

The process ends itself when its time is over (`engine.supervision.worker`). After a pause of the whole machine that
takes a moment, in which the threads of the JVM are at work again as well.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import structlog
from py4j.protocol import Py4JError, Py4JNetworkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

__all__ = ["limited"]

_TELL_SECONDS = 0.5
_log = structlog.get_logger(__name__)


@contextmanager
def limited(spark: SparkSession, until: Callable[[], float | None]) -> Iterator[None]:
    """While in here, what `until` says is passed on about twice a second.

    It says a moment of `time.monotonic`, a later one from time to time as long as the bridge leads; None: without end.
    """
    jvm: Any = spark._jvm
    # Both clocks are that of the system since its start, but neither promises where it begins.
    offset = int(jvm.java.lang.System.nanoTime()) - time.monotonic_ns()
    ended = Event()

    def tell() -> None:
        try:
            while True:
                if (moment := until()) is not None:
                    jvm.jmsbridge.Sends.until(int(moment * 1e9) + offset)
                if ended.wait(_TELL_SECONDS):
                    return
        except (Py4JError, Py4JNetworkError, OSError) as error:
            _log.debug("Spark's Java process is not told until when it may publish: it has ended", why=str(error))

    thread = Thread(target=tell, name="limit", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_TELL_SECONDS)
