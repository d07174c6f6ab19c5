"""Spark sessions whose tasks run in executors, on this machine or on others: their figures, and their task slots.

The driver is the router's JVM, as in a local session. Each executor loads the project's jars from it, reports its
figures to it twice a second, and may publish only while the driver answers (`jmsbridge.cluster` in `jvm/spark`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from engine.errors import ServerEndedError
from engine.spark.settings import is_cluster
from engine.telemetry.meters import ExecutorFigures

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from pyspark.sql import SparkSession

__all__ = [
    "check_executors",
    "executor_figures",
    "lease_seconds",
    "task_slots",
    "wait_for_slots",
]

_MILLISECONDS = 1000.0
_POLL_SECONDS, _REPORT_SECONDS = 0.5, 30.0


def task_slots(spark: SparkSession) -> int:
    """Number of tasks that can run at once: cores of the living executors, or slots of a local session."""
    context: Any = spark.sparkContext
    if not is_cluster(context.master):
        return int(context.defaultParallelism)
    return sum(each.task_slots for each in executor_figures(spark))


def executor_figures(spark: SparkSession) -> list[ExecutorFigures]:
    """Figures of the living executors, as of their last reports; none in a local session."""
    context: Any = spark.sparkContext
    if not is_cluster(context.master):
        return []
    jvm: Any = spark._jvm
    figures = []
    for line in jvm.jmsbridge.cluster.Executors.living(context._jsc.sc()).splitlines():
        executor, *numbers = line.split()
        slots, used, committed, maximum, collecting_ms = map(int, numbers)
        figures.append(ExecutorFigures(executor, slots, used, committed, maximum, collecting_ms / _MILLISECONDS))
    return figures


def wait_for_slots(spark: SparkSession, needed: int, stop: Event, report: Callable[[str], None]) -> bool:
    """Waits until executors have `needed` task slots; returns False if `stop` is set before.

    As long as there are too few, `report` is called with a line for users: at once, when their number changes, and
    every half minute.
    """
    reported, next_report = -1, 0.0
    while (slots := task_slots(spark)) < needed:
        if slots != reported or time.monotonic() >= next_report:
            report(f"waiting for executors of {spark.sparkContext.master}: {slots} of {needed} task slots")
            reported, next_report = slots, time.monotonic() + _REPORT_SECONDS
        if stop.wait(_POLL_SECONDS):
            return False
    return True


def check_executors(spark: SparkSession) -> None:
    """Checks that all executors that have worked for the query report; Spark gives a frozen one two minutes.

    Raises:
        ServerEndedError: one does not; it may not publish any more, and the query has to start again.
    """
    jvm: Any = spark._jvm
    if silent := jvm.jmsbridge.cluster.Executors.silent():
        msg = f"executor {silent} of Spark does not report any more"
        raise ServerEndedError(msg)


def lease_seconds(spark: SparkSession) -> float:
    """Seconds after a driver's last answer in which an executor may still publish, its end included."""
    jvm: Any = spark._jvm
    return float(jvm.jmsbridge.cluster.Executors.leaseSeconds())
