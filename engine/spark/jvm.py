"""Start of the JVM of a Spark session.

Spark's own scripts first start a JVM that only computes the class path and options of a second one. This module knows
both. The class path consists of jars only, as a class-data archive requires, without the jars that no router uses. The
main program is the bridge's own (`jmsbridge.SparkProcess`): it opens the session while Python does other work.

PySpark is imported when a JVM is ready for it: its import takes as long as the start of the JVM.
"""

from __future__ import annotations

import os
import shlex
import signal
import struct
import subprocess
import uuid
from contextlib import suppress
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from engine.jars import class_data_options, copies, defaults_copy
from engine.java import find_java
from engine.private import UMASK, nameless_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "MODULE_OPTIONS",
    "JvmEndedError",
    "StartedJvm",
    "argument_file",
    "class_options",
    "close_pipes",
    "descriptor_path",
    "ignore_signals",
    "properties_file",
    "spark_jars",
    "used_jars",
]

MODULE_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-modules=jdk.incubator.vector",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.invoke=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.reflect=ALL-UNNAMED",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/java.net=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.cs=ALL-UNNAMED",
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
    "--add-opens=java.base/sun.util.calendar=ALL-UNNAMED",
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
"""Java options with which Spark opens modules, in the order of its `JavaModuleOptions`."""

_UNREACHED = (
    "JLargeArrays-*",
    "JTransforms-*",
    "HikariCP-*",
    "ST4-*",
    "algebra_*",
    "antlr-runtime-3*",
    "arpack*",
    "blas-*",
    "breeze*",
    "cats-kernel_*",
    "commons-dbcp-*",
    "commons-pool-1.*",
    "datanucleus-*",
    "derby*",
    "hive-*",
    "javax.jdo-*",
    "jdo-api-*",
    "jjwt-*",
    "jline-*",
    "jpam-*",
    "jta-*",
    "kubernetes-*",
    "lapack-*",
    "libfb303-*",
    "libthrift-*",
    "opencsv-*",
    "scala-compiler-*",
    "scala-parallel-collections_*",
    "spark-connect_*",
    "spark-graphx_*",
    "spark-hive*",
    "spark-kubernetes_*",
    "spark-mllib*",
    "spark-pipelines_*",
    "spark-repl_*",
    "spark-yarn_*",
    "spire*",
    "super-csv-*",
    "transaction-api-*",
    "vertx-*",
    "volcano-*",
    "zjsonpatch-*",
)
"""Spark's jars that a bridge never uses without a cluster manager: machine learning, graphs, Hive, these, the shell."""
_MANAGED = ("k8s:", "yarn")
"""Beginnings of a master for which all of Spark's jars are needed."""

_MAIN = "jmsbridge.SparkProcess"
_WAIT_SECONDS = 0.02


class JvmEndedError(Exception):
    """The JVM ended before it listened for commands; its log holds the reason."""


def class_options(extra_jars: Path, more: Iterable[str] = (), master: str = "local") -> list[str]:
    """Options that say which classes the JVM finds for a master: modules, and a class path of jars.

    First come the project's own jars, since they may replace classes of Spark, then Spark's, then `more`. Copies that
    set-up has made of some of these jars replace them.
    """
    own, used = sorted(extra_jars.absolute().glob("*.jar")), used_jars(master)
    faster = {copy.name: copy for copy in copies().glob("*.jar")}
    defaults = (faster[name] for jar in used if (name := defaults_copy(jar.name)) in faster)
    extras, spark = ([faster.get(jar.name, jar) for jar in originals] for originals in (own, used))
    path = [*extras, *defaults, *spark, *more]
    return [*MODULE_OPTIONS, "-cp", ":".join(map(str, path))]


def used_jars(master: str = "local") -> list[Path]:
    """Spark's own jars that a session with this master needs, in the order of their names."""
    left_out = () if master.startswith(_MANAGED) else _UNREACHED
    return [jar for jar in sorted(spark_jars().glob("*.jar")) if not any(fnmatch(jar.name, each) for each in left_out)]


def spark_jars() -> Path:
    """The folder of Spark's own jars, inside PySpark."""
    return _spark_home() / "jars"


def _spark_home() -> Path:
    """The folder of PySpark, which is not imported for it."""
    spec = find_spec("pyspark")
    assert spec is not None, "PySpark is a dependency"
    assert spec.origin is not None, "PySpark is a package of files"
    return Path(spec.origin).parent


class StartedJvm:
    """A JVM that is starting, and will wait for commands."""

    def __init__(
        self,
        settings: Mapping[str, str],
        options: Sequence[str],
        extra_jars: Path,
        environment: Mapping[str, str],
        log: IO[bytes],
        folder: Path,
    ) -> None:
        """Starts it, and does not wait for it.

        From `settings` this class itself uses `spark.master`, `spark.driver.memory`, `.extraJavaOptions` and
        `.extraClassPath`. The output of the JVM goes to `log`. In `folder`, which only this process uses, the JVM says
        where it listens.

        Raises:
            SetupError: Java is missing or too old.
        """
        java = [
            f"-Xmx{settings['spark.driver.memory']}",
            *class_options(
                extra_jars, filter(None, [settings.get("spark.driver.extraClassPath")]), settings["spark.master"]
            ),
            *class_data_options("spark"),
            *options,
            *shlex.split(settings.get("spark.driver.extraJavaOptions", "")),
        ]
        java_program = find_java()
        self._connection = folder / f"connection-{uuid.uuid4().hex}"
        # Settings and options may contain passwords, every user can see the command line of a process, and a process
        # that is killed leaves its files.
        with properties_file(settings) as spark_settings:
            program = [_MAIN, descriptor_path(spark_settings), str(self._connection)]
            with argument_file([*java, *program]) as arguments:
                self._process = subprocess.Popen(
                    [java_program, f"@{descriptor_path(arguments)}"],
                    pass_fds=(spark_settings.fileno(), arguments.fileno()),
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={
                        **environment,
                        "SPARK_HOME": str(_spark_home()),
                        "SPARK_CONNECT_MODE": "0",
                        "PYTHONHASHSEED": "0",
                    },
                    umask=UMASK,
                    # Ctrl-C and a service manager's SIGTERM may reach all processes of the bridge; the Python process
                    # stops its JVM in order, and the JVM ends by itself when the Python process is gone.
                    preexec_fn=ignore_signals,
                )

    def connect(self) -> Any:
        """Waits until it listens; returns PySpark's gateway to it, whose `proc` is the process.

        Raises:
            JvmEndedError: it ended before it listened.
        """
        while not self._connection.exists():
            if self._process.poll() is not None:
                raise JvmEndedError
            _pause(self._process)
        content = self._connection.read_bytes()
        self._connection.unlink()
        return _connected(self._process, content)

    def kill(self) -> None:
        """Ends it at once; for a JVM that nobody is connected to."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()


def _connected(process: subprocess.Popen[bytes], content: bytes) -> Any:
    """PySpark's gateway to a JVM; `content` is its connection file: port, length of the secret, secret."""
    from pyspark.java_gateway import launch_gateway

    port, length = struct.unpack_from("!ii", content)
    variables = {
        "PYSPARK_GATEWAY_PORT": str(port),
        "PYSPARK_GATEWAY_SECRET": content[8 : 8 + length].decode(),
    }
    os.environ.update(variables)
    try:
        connect: Any = launch_gateway
        gateway = connect()
    finally:
        for name in variables:
            del os.environ[name]
    gateway.proc = process
    return gateway


def _pause(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_WAIT_SECONDS)
    except subprocess.TimeoutExpired:
        return


def ignore_signals() -> None:
    """Makes this process ignore the signals that ask programs to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def close_pipes(*pipes: IO[bytes] | None) -> None:
    """Closes pipes to and from a process, which may have ended before it took everything."""
    for pipe in pipes:
        if pipe is not None:
            # What could not be written is tried once more by `close`.
            with suppress(BrokenPipeError):
                pipe.close()


def descriptor_path(file: IO[bytes]) -> str:
    """Path under which a process that inherits an open file can open it anew."""
    return f"/dev/fd/{file.fileno()}"


def properties_file(settings: Mapping[str, str]) -> IO[bytes]:
    """Java properties file without a name that has settings, which may be secret."""
    return nameless_file("".join(f"{name} {_escaped(value)}\n" for name, value in settings.items()).encode())


def argument_file(arguments: Sequence[str]) -> IO[bytes]:
    """File without a name that has the arguments of a Java program, which others could read on its command line."""
    return nameless_file("".join(f"{_quoted(each)}\n" for each in arguments).encode())


def _escaped(value: str) -> str:
    """The value with the escapes of a Java properties file."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _quoted(argument: str) -> str:
    """The argument as a line of a Java argument file."""
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
