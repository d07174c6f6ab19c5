"""The process of a provider's client, with a stand-in for its JVM."""

from __future__ import annotations

import os
import resource
import struct
import sys
from contextlib import ExitStack
from threading import Timer
from typing import TYPE_CHECKING, cast

import pytest

from engine.connectors.base import NotConnectedError
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.jms_client import process
from engine.connectors.jms_client.process import ClientProcess, texts
from engine.embedded.artemis import artemis_home
from engine.errors import HardFailureError
from routes.config import loads
from tests.conftest import JARS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from engine.connectors.jms_client.settings import JmsClientSourceConfig

READY = (ord("R"), texts(["Coil", "1", "2.0"]))
REFUSED = (ord("F"), texts(["refused", "the client jars do not fit together: NoClassDefFoundError: A"]))
LOST = (ord("F"), texts(["lost", "the connection is broken (MQRC 2009)"]))
LIB = artemis_home(JARS) / "lib"
CONFIG = f"""
bridge.id=b1
routes.a.in.include=TRUE
routes.a.out.topic=out
kafka.bootstrap.servers=127.0.0.1:1
source.mq.type=jms
source.mq.destinations=queue:q
source.mq.class-path={LIB}/artemis-jms-client-*.jar, {LIB}/artemis-core-client-*.jar
source.mq.connection-factory=org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory
"""


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClientProcess]:
    """A client whose process writes the bytes in the file `frames`, then reads up to CLOSE, or as `then` says."""
    script = tmp_path / "java"
    script.write_text(
        f"#!{sys.executable}\nimport sys, time\n"
        f"open(sys.argv[-1], 'wb').write(open({str(tmp_path / 'frames')!r}, 'rb').read())\n"
        f"exec(open({str(tmp_path / 'then')!r}).read())\n"
    )
    close = r"b'\0\0\0\0X'"
    (tmp_path / "then").write_text(f"while not sys.stdin.buffer.read1().endswith({close}): pass")
    script.chmod(0o700)
    monkeypatch.setattr(process, "_java", lambda: script)
    config = loads(CONFIG)
    client = ClientProcess(SystemEndpoint.of(config, cast("JmsClientSourceConfig", config.sources[0])))
    yield client
    client.close()


def write(folder: Path, *frames: tuple[int, bytes]) -> None:
    content = b"".join(struct.pack(">IB", len(data), kind) + data for kind, data in frames)
    (folder / "frames").write_bytes(content)


def test_jars_that_do_not_fit_together_are_a_refusal_while_connecting(client: ClientProcess, tmp_path: Path) -> None:
    write(tmp_path, REFUSED)
    with pytest.raises(HardFailureError, match="do not fit together"):
        client.start({})


def test_jars_in_which_a_later_message_misses_a_class_are_a_lost_connection(
    client: ClientProcess, tmp_path: Path
) -> None:
    write(tmp_path, READY, REFUSED)
    client.start({})
    with pytest.raises(NotConnectedError, match="do not fit together") as lost:
        client.next(10)
    assert lost.value.back_off_seconds == 30


def test_a_process_that_cannot_be_written_to_has_said_why_it_ended(client: ClientProcess, tmp_path: Path) -> None:
    (tmp_path / "then").write_text("sys.stdin.buffer.read1()  # Ends when it has the settings.")
    write(tmp_path, READY, (ord("O"), texts(["1", ""])), LOST)
    client.start({})
    assert client._process is not None
    client._process.wait(10)
    with pytest.raises(NotConnectedError, match="MQRC 2009"):
        client.write(ord("S"), b"x" * 100_000)


def test_a_process_that_ends_while_much_is_written_to_it_has_said_why(client: ClientProcess, tmp_path: Path) -> None:
    """The pipe is full, so the frames of the process are read in between, its last one too."""
    (tmp_path / "then").write_text("time.sleep(60)")
    write(tmp_path, READY, LOST)
    client.start({})
    process = client._process
    assert process is not None
    Timer(0.5, process.kill).start()
    with pytest.raises(NotConnectedError, match="MQRC 2009"):
        client.write(ord("S"), b"x" * 3_000_000)


def test_descriptors_of_a_process_with_many_open_files_are_waited_for(client: ClientProcess, tmp_path: Path) -> None:
    write(tmp_path, READY)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with ExitStack() as stack:
        # select() takes no descriptor above 1,023.
        for _ in range(1_100):
            stack.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        client.start({})
        assert client.provider
        client.close()
