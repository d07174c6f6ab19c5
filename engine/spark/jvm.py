"""Start of the JVM of a Spark session.

Spark's own scripts first start a JVM that only computes the class path and options of a second one. This module knows
both. The class path consists of jars only, as a class-data archive requires, without the jars that no router uses.
"""

from __future__ import annotations

import os
import shlex
import signal
import struct
import subprocess
import tempfile
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pyspark
from pyspark.java_gateway import launch_gateway

from engine.embedded.java import find_java
from engine.jars import class_data_options, copies, defaults_copy
from engine.private import UMASK

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["MODULE_OPTIONS", "JvmEndedError", "class_options", "spark_jars", "start_jvm"]

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
"""Spark's jars that a router in local mode never uses: machine learning, graphs, Hive, cluster managers, the shell."""

_CONNECTION_FILE = "_PYSPARK_DRIVER_CONN_INFO_PATH"
_WAIT_SECONDS = 0.02
_SUBMIT = ("org.apache.spark.deploy.SparkSubmit", "pyspark-shell")


class JvmEndedError(Exception):
    """The JVM ended before it listened for commands; its log holds the reason."""


def class_options(extra_jars: Path, more: Iterable[str] = ()) -> list[str]:
    """Options that say which classes the JVM finds: modules, and a class path of jars.

    First come the project's own jars, since they may replace classes of Spark, then Spark's, then `more`. Copies that
    set-up has made of some of Spark's jars replace these.
    """
    found = sorted(spark_jars().glob("*.jar"))
    used = [jar for jar in found if not any(fnmatch(jar.name, pattern) for pattern in _UNREACHED)]
    faster = {copy.name: copy for copy in copies().glob("*.jar")}
    defaults = (faster[name] for jar in used if (name := defaults_copy(jar.name)) in faster)
    spark = (faster.get(jar.name, jar) for jar in used)
    path = [*sorted(extra_jars.absolute().glob("*.jar")), *defaults, *spark, *more]
    return [*MODULE_OPTIONS, "-cp", ":".join(map(str, path))]


def spark_jars() -> Path:
    """The folder of Spark's own jars, inside PySpark."""
    return Path(pyspark.__file__).parent / "jars"


def start_jvm(
    settings: Mapping[str, str],
    options: Sequence[str],
    extra_jars: Path,
    environment: Mapping[str, str],
    log: IO[bytes],
) -> Any:
    """Starts a JVM that waits for commands; returns PySpark's gateway to it, whose `proc` is the process.

    From `settings` this function uses `spark.driver.memory`, `.extraJavaOptions` and `.extraClassPath`; Spark reads the
    others from the folder that SPARK_CONF_DIR of `environment` names. The output of the JVM goes to `log`.

    Raises:
        SetupError: Java is missing or too old.
        JvmEndedError: the JVM ended before it listened.
    """
    home = Path(pyspark.__file__).parent
    java = [
        f"-Xmx{settings['spark.driver.memory']}",
        *class_options(extra_jars, filter(None, [settings.get("spark.driver.extraClassPath")])),
        *class_data_options("spark"),
        *options,
        *shlex.split(settings.get("spark.driver.extraJavaOptions", "")),
    ]
    with tempfile.TemporaryDirectory() as folder:
        connection, arguments = Path(folder, "connection"), Path(folder, "arguments")
        # In a file, since options may contain passwords and every user can see the command line of a process.
        arguments.write_text("".join(f"{_quoted(each)}\n" for each in [*java, *_SUBMIT]))
        process = subprocess.Popen(
            [find_java(), f"@{arguments}"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={
                **environment,
                "SPARK_HOME": str(home),
                "SPARK_CONNECT_MODE": "0",
                "PYTHONHASHSEED": "0",
                _CONNECTION_FILE: str(connection),
            },
            umask=UMASK,
            # Ctrl-C in the terminal reaches all processes of the bridge; the Python process stops its JVM in order.
            preexec_fn=_ignore_interrupts,
        )
        while not connection.exists():
            if process.poll() is not None:
                raise JvmEndedError
            _pause(process)
        content = connection.read_bytes()
    return _connected(process, content)


def _connected(process: subprocess.Popen[bytes], content: bytes) -> Any:
    """PySpark's gateway to a JVM; `content` is its connection file: port, length of the secret, secret."""
    port, length = struct.unpack_from("!ii", content)
    given = {
        "PYSPARK_GATEWAY_PORT": str(port),
        "PYSPARK_GATEWAY_SECRET": content[8 : 8 + length].decode(),
    }
    os.environ.update(given)
    try:
        connect: Any = launch_gateway
        gateway = connect()
    finally:
        for name in given:
            del os.environ[name]
    gateway.proc = process
    return gateway


def _pause(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_WAIT_SECONDS)
    except subprocess.TimeoutExpired:
        return


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _quoted(argument: str) -> str:
    """The argument as a line of a Java argument file."""
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
