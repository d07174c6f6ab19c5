"""Every port that the router listens on, in its JVM and in Python, and what a program without its secret gets there."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from tests.processes import listening

CHUNK, NO_CHUNK, REQUEST, RESPONSE, FAILURE, STREAM, NO_STREAM = 0, 2, 3, 4, 5, 6, 8
"""Messages of Spark's network layer by their first byte: `org.apache.spark.network.protocol.Message.Type`."""


def ports(spark: SparkSession) -> tuple[int, int, int]:
    """Those of the driver, of its blocks, and of the gateway to Python."""
    # The JVM cannot list the methods of `SparkEnv`: Spark 4.3.0 comes without a class (of protobuf) that one returns.
    context: Any = spark.sparkContext
    gateway: Any = SparkContext._gateway
    (blocks,) = str(context._jsc.sc().getExecutorMemoryStatus().keys().mkString(",")).split(",")
    driver = int(context.getConf().get("spark.driver.port"))
    return driver, int(blocks.rpartition(":")[2]), int(gateway.gateway_parameters.port)


def answer(port: int, body: bytes) -> int | None:
    """The type of what a port answers to a request without any login; None if it ends the connection."""
    kind, _ = whole_answer(port, struct.pack(">bqi", REQUEST, 1, len(body)) + body)
    return kind


def whole_answer(port: int, message: bytes) -> tuple[int | None, bytes]:
    """The type of what a port answers to a message without any login, and the rest; None if it ends the connection."""
    with socket.create_connection(("127.0.0.1", port), 10) as stranger:
        stranger.sendall(struct.pack(">q", len(message) + 8) + message)
        head = stranger.recv(9, socket.MSG_WAITALL)
        if len(head) < 9:
            return None, b""
        size, kind = struct.unpack(">qb", head)
        return kind, stranger.recv(size - 9, socket.MSG_WAITALL)


def is_there(spark: SparkSession, port: int) -> bytes:
    """Asks the driver, in Java's serialization, whether it has an endpoint that each driver has."""
    jvm: Any = spark._jvm
    question = getattr(jvm.org.apache.spark.rpc.netty, "RpcEndpointVerifier$CheckExistence")("HeartbeatReceiver")
    written = jvm.java.io.ByteArrayOutputStream()
    jvm.java.io.ObjectOutputStream(written).writeObject(question)
    host, name = b"127.0.0.1", b"endpoint-verifier"
    receiver = b"\x01" + struct.pack(">H", len(host)) + host + struct.pack(">i", port)
    receiver += struct.pack(">H", len(name)) + name
    return b"\x00" + receiver + bytes(written.toByteArray())


def test_a_stranger_is_refused_at_every_port(spark: SparkSession) -> None:
    gateway: Any = SparkContext._gateway
    driver, blocks, python = ports(spark)
    # Gateways for Python listen on a port for each way.
    assert listening(gateway.proc.pid) == {driver, blocks, python}

    assert answer(driver, is_there(spark, driver)) in (FAILURE, None)

    jvm: Any = spark._jvm
    wanted = jvm.org.apache.spark.network.shuffle.protocol.OpenBlocks("a", "b", gateway.new_array(jvm.String, 0))
    assert answer(blocks, bytes(wanted.toByteBuffer().array())) in (FAILURE, None)

    with socket.create_connection(("127.0.0.1", python), 10) as stranger:
        stranger.sendall(b"c\nz:java.lang.System\ncurrentTimeMillis\ne\n")
        assert not stranger.recv(100).startswith(b"!y")


def test_streams_and_chunks_are_refused_though_without_a_login(spark: SparkSession) -> None:
    # Spark looks at the login of requests only. docs/security.md says what a stranger learns.
    driver, blocks, _ = ports(spark)
    context: Any = spark.sparkContext
    assert (context._jsc.sc().listJars().size(), context._jsc.sc().listFiles().size()) == (0, 0)
    for port in (driver, blocks):
        for name in (b"/files/a", b"/jars/a.jar", b"/classes/A.class", b"rdd_0_0", b"0_0"):
            kind, _ = whole_answer(port, struct.pack(">bi", STREAM, len(name)) + name)
            assert kind in (NO_STREAM, None)
        for number in (0, 1 << 40):
            kind, _ = whole_answer(port, struct.pack(">bqi", CHUNK, number, 0))
            assert kind in (NO_CHUNK, None)


def test_python_listens_on_one_port_which_wants_a_token(spark: SparkSession, opened_in_python: set[int]) -> None:
    context: Any = spark.sparkContext
    server = context._accumulatorServer
    assert server.server_address[0] == "127.0.0.1"
    assert opened_in_python == {server.server_address[1]}
    # The one that Python functions of streams would need.
    gateway: Any = SparkContext._gateway
    assert getattr(gateway, "_callback_server", None) is None
    with socket.create_connection(server.server_address, 3) as stranger, suppress(TimeoutError):
        stranger.sendall(b"\0" * 1000)
        # No byte comes: the server hangs up, or is busy with the JVM's connection, which it serves alone.
        assert stranger.recv(100) == b""


def test_the_secret_is_in_no_setting_and_no_log(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    user = jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser()
    # The name of the secret in Spark's `SecurityManager`, SECRET_LOOKUP_KEY.
    secret = user.getCredentials().getSecretKey(jvm.org.apache.hadoop.io.Text("sparkCookie")).decode()
    assert len(secret) >= 32
    context = spark.sparkContext
    assert secret not in str(context.getConf().getAll())
    gateway: Any = SparkContext._gateway
    process = Path(f"/proc/{gateway.proc.pid}")
    for name in ("cmdline", "environ"):
        assert secret.encode() not in (process / name).read_bytes()
    folder = Path(str(context._conf.get("spark.local.dir"))).parents[1]
    texts = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert texts["spark.log"]
    assert not [name for name, text in texts.items() if secret.encode() in text]
