"""The process of a provider's client, with a stand-in for its JVM."""

from __future__ import annotations

import struct
import sys
from typing import TYPE_CHECKING, cast

import pytest

from engine.connectors.base import NotConnectedError
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
    """A client whose process writes the bytes in the file `frames`."""
    script = tmp_path / "java"
    script.write_text(
        f"#!{sys.executable}\nimport sys\n"
        f"open(sys.argv[-1], 'wb').write(open({str(tmp_path / 'frames')!r}, 'rb').read())\nsys.stdin.read()\n"
    )
    script.chmod(0o700)
    monkeypatch.setattr(process, "_java", lambda: script)
    config = loads(CONFIG)
    client = ClientProcess(config, cast("JmsClientSourceConfig", config.sources[0]))
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
