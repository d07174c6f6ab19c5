"""Spark session of a part, in a JVM of its own (`engine.spark.launch` has its settings)."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

import structlog
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from engine.errors import ServerEndedError
from engine.spark.java_names import remember_names
from engine.spark.launch import Launch, launch, log_file
from engine.spark.section import SparkConfig
from engine.spark.settings import SPARE_SLOTS, unfit_master
from routes.errors import ConfigurationError, Fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from routes.model import Config

__all__ = [
    "close",
    "foreseen_end",
    "has_ended",
    "leave_out_numpy",
    "open_session",
    "opened",
    "opened_by",
    "running_tasks",
    "start",
]

_STOP_SECONDS = 20
_TEST_TOOLS = "pyspark.testing", "pyspark.testing.utils"

_log = structlog.get_logger(__name__)


def start(config: Config, partitions: int | None = None, launched: Launch | None = None) -> SparkSession:
    """Starts a Spark session as configured, with a task slot for each of the journal's `partitions`.

    If a session is running, returns it, or a new one if it has too few slots. Without `partitions` the configured
    number counts, since the journal may not exist yet. `launched` is a JVM that opens a session, if there is one.

    Raises:
        ConfigurationError: `spark.master` is local and has too few slots, with which the query would hang silently.
        SetupError: the JVM does not start, or the jars are missing.
    """
    partitions = partitions or config.journal.partitions
    master = config.section(SparkConfig).get("spark.master")
    if master is not None and (unfit := unfit_master(master, partitions)):
        raise ConfigurationError([Fault(*unfit, file=str(config.path), key="spark.master")])
    running = SparkSession.getActiveSession()
    if running is None and launched is not None:
        running = open_session(launched)
    if running is not None:
        if master is not None or running.sparkContext.defaultParallelism >= partitions + SPARE_SLOTS:
            return running
        close(running)
    return open_session(launch(config, partitions))


@contextmanager
def opened(config: Config, partitions: int) -> Iterator[SparkSession]:
    """A session as `start` opens it, closed afterwards.

    Raises:
        ServerEndedError: the JVM has ended.
    """
    with foreseen_end(log_file(config.embedded.data)):
        session = start(config, partitions)
        try:
            yield session
        finally:
            close(session)


@contextmanager
def opened_by(launched: Launch) -> Iterator[SparkSession]:
    """The session of a JVM that has been launched, as `open_session`, closed afterwards.

    Raises:
        ServerEndedError: the JVM has ended.
    """
    with foreseen_end(launched.log):
        session = open_session(launched)
        try:
            yield session
        finally:
            close(session)


@contextmanager
def foreseen_end(log: Path) -> Iterator[None]:
    """Raises ServerEndedError, which names the log of the JVM, for errors of calls to a JVM that has ended."""
    try:
        yield
    except (Py4JNetworkError, ConnectionError) as error:
        msg = f"Spark's Java process has ended; {log} may say why"
        raise ServerEndedError(msg) from error


def open_session(launched: Launch) -> SparkSession:
    """The Spark session that a JVM has opened by itself; waits for it.

    Raises:
        SetupError: the JVM does not start, or Spark refuses a setting, or its cluster does not take the application.
    """
    with _own_interrupts():
        gateway = launched.connect()
        remember_names(gateway.jvm)
        try:
            session = gateway.jvm.jmsbridge.SparkProcess.session()
        except Py4JJavaError as error:
            gateway.shutdown()
            raise launched.refused() from error
        java_context = gateway.jvm.JavaSparkContext.fromSparkContext(session.sparkContext())
        conf = SparkConf(_jconf=java_context.getConf())
        return SparkSession(SparkContext(gateway=gateway, conf=conf, jsc=java_context), session)


def leave_out_numpy() -> None:
    """Makes PySpark take NumPy for not installed, in a process whose plans have no values of NumPy.

    At the first constant of a plan, PySpark asks its test tools, which import NumPy, PyArrow and unittest.
    """
    if _TEST_TOOLS[1] not in sys.modules:
        for name in _TEST_TOOLS:
            sys.modules[name] = ModuleType(name)
        vars(sys.modules[_TEST_TOOLS[1]])["have_numpy"] = False


def close(session: SparkSession) -> None:
    """Stops the session and its JVM; returns when the JVM's process has ended."""
    gateway = SparkContext._gateway
    assert gateway is not None, "a session has a gateway"
    process: subprocess.Popen[bytes] = gateway.proc
    if process.poll() is None:
        try:
            session.stop()
            gateway.shutdown()
        except (Py4JNetworkError, ConnectionError) as error:
            _log.debug("Spark's JVM is just ending, and has nothing left to stop", why=str(error))
        except Py4JError as error:
            # An error for which the caller closes the session must not be lost to this one.
            _log.warning("Spark's session did not stop in order; its JVM is ended", why=str(error))
    SparkContext._gateway = SparkContext._jvm = None
    if process.stdin is not None:
        # The JVM exits at the end of its standard input.
        process.stdin.close()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def has_ended() -> bool:
    """True if the JVM of the session has ended, which is noticed otherwise at the next call."""
    gateway = SparkContext._gateway
    return gateway is None or gateway.proc.poll() is not None


def running_tasks(session: SparkSession) -> int:
    """Number of tasks that run in the JVM, including those that were told to stop and have not yet."""
    tracker: Any = session._jsc.sc().statusTracker()
    return sum(executor.numRunningTasks() for executor in tracker.getExecutorInfos())


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Restores the installed handler of Ctrl-C at the end; Spark replaces it with its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
