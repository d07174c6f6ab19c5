"""Clients that hang, exit or deserialise, and destinations by JNDI."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.connectors.base import NotConnectedError
from engine.connectors.jms_client import process
from engine.message import BodyType, Message
from tests.integration.connectors.jms_ends import child, ends_of
from tests.integration.connectors.jms_harness import client
from tests.integration.connectors.running import numbered, numbers
from tests.integration.connectors.worker import start_worker
from tests.java import jms_program
from tests.waiting import until

if TYPE_CHECKING:
    from engine.embedded import EmbeddedArtemis, EmbeddedKafka
    from tests.integration.connectors.conftest import Configure, MakeEnds, Start
    from tests.integration.connectors.jms_harness import JmsHarness

PROGRAM = Path(__file__).with_name("FailingFactory.java")
by_core = pytest.mark.usefixtures("fast_core")


def failing(artemis: EmbeddedArtemis, harm: str, data: str = "") -> dict[str, str]:
    own = client(artemis.core_url)
    classes = jms_program(PROGRAM)[2].partition(":")[0]
    given = {".connection-factory.harm": harm, ".connection-factory.data": data}
    return own | {".class-path": f"{own['.class-path']}, {classes}", ".connection-factory": "FailingFactory"} | given


def hostile(file: Path) -> bytes:
    """A serialised object that makes a file when it is deserialised."""
    done = subprocess.run([*jms_program(PROGRAM), str(file)], capture_output=True, text=True, check=True)
    return bytes.fromhex(done.stdout.strip())


def test_a_client_that_hangs_is_a_connection_that_broke(
    jms: JmsHarness,
    configured: Configure,
    start: Start,
    queue: str,
    kafka: EmbeddedKafka,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "_SILENT_SECONDS", 4.0)
    config = configured(jms.settings(queue))
    jms.send(queue, numbered(500))
    source = start(config)
    until(lambda: source.count("acknowledged") == 500)
    os.kill(child(), signal.SIGSTOP)
    until(lambda: source.count("reconnects") == 1)
    jms.send(queue, numbered(100, begin=500))
    until(lambda: jms.waiting(queue) == 0)
    source.stop()
    assert source.error is None
    assert sorted(numbers(kafka.bootstrap, config.journal.topic)) == list(range(600))


@by_core
def test_a_client_that_exits_is_a_connection_that_broke(artemis: EmbeddedArtemis, ends: MakeEnds) -> None:
    both = ends(failing(artemis, "exits"))

    def run() -> None:
        both.source.connect()
        until(lambda: both.source.receive(0.5))

    with pytest.raises(NotConnectedError, match="the process of the client has ended with 3"):
        run()


@by_core
@pytest.mark.parametrize("harm", ["hangs", "leaves a thread"])
def test_a_client_ends_with_its_worker_whatever_the_provider_does(
    artemis: EmbeddedArtemis, configured: Configure, queue: str, tmp_path: Path, harm: str
) -> None:
    keys = failing(artemis, harm) | {".type": "jms", ".destinations": f"queue:{queue}"}
    log = tmp_path / "worker.log"
    worker = start_worker("source", "src", configured(keys).path, log)
    try:
        until(lambda: "a thread hangs" in log.read_text())
        threads = Path(f"/proc/{child(worker.pid)}/task")
    finally:
        worker.kill()
        worker.wait()
    until(lambda: not threads.exists())


@by_core
def test_a_message_at_which_the_client_throws_stays_and_is_told(
    artemis: EmbeddedArtemis, ends: MakeEnds, queue: str
) -> None:
    both = ends(failing(artemis, "cannot read"))
    both.sink.connect()
    texts = (b"one", b"two", b"foreign", b"three")
    assert both.send(f"queue/{queue}", *map(Message, texts)) == dict.fromkeys(range(4))
    both.source.connect()
    assert [each.body for each in both.receive(2)] == [b"one", b"two"]
    for _ in range(2):
        with pytest.raises(
            NotConnectedError,
            match=f"cannot read a message of queue:{queue}, which stays there with all behind it: this is not",
        ) as told:
            until(lambda: both.source.receive(0.5), 30)
        assert told.value.back_off_seconds is None, "the pauses grow from the shortest on"
        both.source.connect()
    both.source.close()
    whole = ends(failing(artemis, ""))
    whole.source.connect()
    assert [each.body for each in whole.receive(2)] == [b"foreign", b"three"], "what came before is acknowledged"


@by_core
def test_nothing_is_deserialised(artemis: EmbeddedArtemis, ends: MakeEnds, tmp_path: Path, queue: str) -> None:
    data = hostile(tmp_path / "made")
    with pytest.raises(NotConnectedError, match=r"may not deserialise FailingFactory\$Hostile, see deserialized-cla"):
        ends(failing(artemis, "deserialises", data.hex())).source.connect()
    both = ends(failing(artemis, ""))
    both.sink.connect()
    assert both.send(f"queue/{queue}", Message(data, BodyType.OBJECT)) == {0: None}
    both.source.connect()
    (found,) = both.receive(1)
    assert (found.body, found.body_type) == (data, BodyType.OBJECT)
    assert not (tmp_path / "made").exists()
    # So that the test shows something: without the filter it is deserialised.
    open_filter = {".deserialized-classes": "FailingFactory$Hostile;!*"}
    ends(failing(artemis, "deserialises", data.hex()) | open_filter).source.connect()
    assert (tmp_path / "made").exists()


@by_core
def test_remote_code_bases_are_closed(artemis: EmbeddedArtemis, ends: MakeEnds) -> None:
    ends(client(artemis.core_url)).source.connect()
    options = Path(f"/proc/{child()}/cmdline").read_text().split("\0")
    for name in ("rmi.object", "ldap.object", "cosnaming.object"):
        assert f"-Dcom.sun.jndi.{name}.trustURLCodebase=false" in options
    assert "-Dcom.sun.jndi.ldap.object.trustSerialData=false" in options


@by_core
def test_destinations_are_looked_up_in_jndi(
    artemis: EmbeddedArtemis, tmp_path: Path, queue: str, ends: MakeEnds
) -> None:
    keys = {
        ".type": "jms",
        ".class-path": client(artemis.core_url)[".class-path"],
        ".jndi.java.naming.factory.initial": "org.apache.activemq.artemis.jndi.ActiveMQInitialContextFactory",
        ".jndi.connectionFactory.CF": artemis.core_url,
        ".jndi.connection-factory": "CF",
        ".jndi.queue.ORDERS": queue,
        ".jndi-destinations": "true",
    }
    both = ends_of(tmp_path, keys, "queue:ORDERS")
    try:
        both.sink.connect()
        assert both.send("queue/ORDERS", Message(b"1")) == {0: None}
        both.source.connect()
        (found,) = both.receive(1)
        assert found.headers["JMSDestination"] == f"queue:{queue}"
        (refusal,) = both.send("queue/OTHER", Message(b"2")).values()
        assert refusal == "JNDI has no destination 'OTHER'"
    finally:
        both.close()
