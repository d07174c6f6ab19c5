"""Every port that the router's JVM listens on refuses who does not know its secret."""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

REQUEST, RESPONSE, FAILURE = 3, 4, 5
"""Messages of Spark's network layer by their first byte: `org.apache.spark.network.protocol.Message.Type`."""


def listening(pid: int) -> set[int]:
    """The TCP ports on which a process listens."""
    inodes = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == "0A" and f"socket:[{rest[5]}]" in inodes:
                found.add(int(local.rpartition(":")[2], 16))
    return found


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
    with socket.create_connection(("127.0.0.1", port), 10) as stranger:
        message = struct.pack(">bqi", REQUEST, 1, len(body)) + body
        stranger.sendall(struct.pack(">q", len(message) + 8) + message)
        head = stranger.recv(9, socket.MSG_WAITALL)
    return head[8] if len(head) == 9 else None


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
