"""Time limit for publishing, passed to the JVM: the JVM of a router that no longer leads must not publish.

The Python process ends itself when its time is over (`engine.supervision.worker`). After a pause of the whole machine
that takes a moment, in which the JVM's threads run too; the limit stops them.
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
    """Passes the result of `until` to the JVM about twice a second, in a thread, until the context ends.

    `until` returns the moment of `time.monotonic` up to which the router may publish. It returns later moments as long
    as the bridge leads, and None if there is no limit.
    """
    jvm: Any = spark._jvm
    # Both are monotonic clocks of the system and run alike, but neither documents its zero: hence the offset.
    offset = int(jvm.java.lang.System.nanoTime()) - time.monotonic_ns()
    ended = Event()

    def tell() -> None:
        try:
            while True:
                if (moment := until()) is not None:
                    jvm.jmsbridge.figures.Sends.until(int(moment * 1e9) + offset)
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
