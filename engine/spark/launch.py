"""Start of the router's JVM with the settings of its Spark session, before PySpark is imported.

The JVM reads its configuration from a folder of the bridge, so that another Spark installation on the machine has no
effect. The output of Spark and its JVM goes to the log file, never to the user's terminal.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from engine.errors import SetupError
from engine.file_lock import lock, try_lock
from engine.jars import HALLMARKS, jars
from engine.java import LATE_OPTIMISING
from engine.private import create_file, make_folder
from engine.spark.jvm import JvmEndedError, StartedJvm
from engine.spark.settings import environment, is_cluster, java_options, local_master, session_settings

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from routes.model import Config

__all__ = ["Launch", "checkpoint_settings", "early_launch", "launch", "launch_by", "log_file", "own_folder"]

_OURS = HALLMARKS["spark"]
_HELD: list[IO[str]] = []
"""Locks of this process's temporary folders; the operating system frees them when the process ends."""

_LOCAL_CHECKPOINT = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}
"""Settings for a checkpoint on a local disk, where they shorten the pause between two intervals of real-time mode."""

_LOG_SETTINGS = "log4j2.properties"
_REASON = re.compile(r" ERROR .*Reason: (.+)")
"""Line of Spark's log that tells why a cluster has ended the application."""
_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


def launch(config: Config, partitions: int = 0) -> Launch:
    """Starts the JVM of a configuration's Spark session, and does not wait for it; raises as `Launch`.

    The session has a task slot for each of the journal's `partitions`, and usually more.
    """
    return Launch(*_described(config, partitions))


def early_launch(config: Config) -> bytes | None:
    """Description of the launch of a configuration, for `launch_by` in a process that has not read the configuration.

    None for a cluster: the executors of a bridge that stands by would take the slots of the one that leads.
    """
    folder, log, settings = _described(config)
    if is_cluster(settings["spark.master"]):
        return None
    return json.dumps([str(folder), str(log), settings, sorted(config.secret_variables)]).encode()


def launch_by(descriptor: int) -> Launch:
    """Starts the JVM that the file with this descriptor describes, as `launch` does; closes the descriptor."""
    with os.fdopen(descriptor, "rb") as file:
        folder, log, settings, hidden = json.load(file)
    return Launch(Path(folder), Path(log), settings, hidden)


def _described(config: Config, partitions: int = 0) -> tuple[Path, Path, dict[str, str]]:
    """Folder, log file and settings of the session, as `Launch` takes them."""
    # Its import takes longer than all others of this module together, and `launch_by` does without.
    from engine.spark.section import SparkConfig

    settings = {
        "spark.master": local_master(partitions),
        **checkpoint_settings(config.router.checkpoint),
        **config.section(SparkConfig),
    }
    return config.embedded.data / "spark", log_file(config.embedded.data), settings


def checkpoint_settings(place: Path | str) -> Mapping[str, str]:
    """Spark settings for a checkpoint at a place of the configuration."""
    return _LOCAL_CHECKPOINT if isinstance(place, Path) else {}


def log_file(data: Path) -> Path:
    """Path of the log file of Spark and its JVM."""
    return data / "log" / "spark.log"


class Launch:
    """JVM that is starting, and opens a session with the settings that it is given."""

    def __init__(self, folder: Path, log: Path, settings: Mapping[str, str], hidden: Collection[str] = ()) -> None:
        """Starts the JVM.

        Args:
            folder: folder for Spark's temporary files and configuration.
            log: log file of Spark and its JVM.
            settings: Spark settings; they override this module's defaults.
            hidden: variables of the environment that the JVM does not get, as other users could read a secret there.

        Raises:
            SetupError: the jars are missing, or Java is missing or too old.
        """
        extras = jars() / "spark"
        if not (extras / _OURS).exists():
            msg = f"no {_OURS} in {extras}: run `make setup`"
            raise SetupError(msg)
        self.log = log
        self._folder = own_folder(folder.absolute() / "tmp")
        make_folder(log.parent)
        with create_file(self._folder / _LOG_SETTINGS) as file:
            file.write(_LOG4J.format(log=log.absolute()))
        places = {"spark.local.dir": str(self._folder), "spark.sql.warehouse.dir": str(folder.absolute() / "warehouse")}
        merged = session_settings(settings, places, extras, LATE_OPTIMISING)
        self._master = merged["spark.master"]
        # These options come before spark.driver.extraJavaOptions, so that the operator's options override them.
        options = [
            f"-Djava.io.tmpdir={self._folder}",
            f"-Dlog4j2.configurationFile={self._folder / _LOG_SETTINGS}",
            *java_options(merged["spark.driver.memory"]),
            *LATE_OPTIMISING,
        ]
        variables = environment(self._folder, self._master, hidden)
        with log.open("ab") as output:
            self._jvm: StartedJvm | None = StartedJvm(merged, options, extras, variables, output, self._folder)

    def connect(self) -> Any:
        """Waits for the JVM; returns PySpark's gateway to it, whose caller has to end it from then on.

        Raises:
            SetupError: the JVM does not start.
        """
        assert self._jvm is not None, "it is connected to once"
        jvm, self._jvm = self._jvm, None
        try:
            return jvm.connect()
        except JvmEndedError as error:
            msg = f"Spark's Java process does not start: {_last_line(self.log)} (all of it: {self.log})"
            raise SetupError(msg) from error

    def refused(self) -> SetupError:
        """The error for a session that Spark has not opened, with the reason in its log."""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        reasons = [reason[1] for line in text.splitlines() if (reason := _REASON.search(line))]
        why = reasons[-1] if reasons else _last_line(self.log)
        return SetupError(f"Spark opens no session at {self._master}: {why} (all of it: {self.log})")

    def abandon(self) -> None:
        """Ends the JVM if nobody has connected to it; no effect otherwise."""
        if self._jvm is not None:
            jvm, self._jvm = self._jvm, None
            jvm.kill()


def own_folder(tmp: Path) -> Path:
    """Makes a new folder in `tmp` for temporary files of this process and its JVM.

    Deletes the folders of processes that were killed. Folders of living processes, such as other routers that stand by,
    stay: each process holds a lock on its folder.
    """
    make_folder(tmp)
    with (tmp / "lock").open("w") as everybody:
        lock(everybody.fileno())
        for folder in filter(Path.is_dir, tmp.iterdir()):
            with (folder / "lock").open("w") as owner:
                if try_lock(owner.fileno()):
                    shutil.rmtree(folder, ignore_errors=True)
        made = Path(tempfile.mkdtemp(dir=tmp))
        _HELD.append((made / "lock").open("w"))
        lock(_HELD[-1].fileno())
    return made


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"
