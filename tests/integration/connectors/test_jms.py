"""Sources and sinks by providers' own JMS clients: each client, topics, requests, and processes that die."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.connectors.base import NotConnectedError
from engine.connectors.jms_client.class_path import files, resolve
from engine.connectors.system import connector
from engine.embedded import free_ports
from engine.embedded.artemis import artemis_home
from engine.errors import HardFailureError, SetupError
from engine.java import find_java
from engine.message import BodyType, Message
from engine.telemetry.status import State
from routes.properties import JmsType, Property
from tests.conftest import JARS
from tests.integration.connectors.jms_ends import child
from tests.integration.connectors.jms_harness import client
from tests.integration.connectors.running import numbered, numbers
from tests.integration.connectors.stomp_jms import PASSWORD, USER, JmsClient, StrictArtemis
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from engine.embedded import EmbeddedArtemis, EmbeddedKafka
    from tests.integration.connectors.conftest import Configure, MakeEnds, Start
    from tests.integration.connectors.jms_harness import JmsHarness

CLASSIC = "org.apache.activemq.ActiveMQConnectionFactory"
QPID = "org.apache.qpid.jms.JmsConnectionFactory"
SERIALIZED = b"\xac\xed\x00\x05t\x00\x01o"

Settings = dict[str, str]
by_core = pytest.mark.usefixtures("fast_core")


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Sequence[Path]]:
    """The jars of a Maven package, from the repositories; without them the test is skipped."""
    folder = tmp_path_factory.mktemp("packages")

    def get(package: str) -> Sequence[Path]:
        try:
            return resolve(folder, (package,))
        except SetupError as error:
            pytest.skip(str(error))

    return get


@pytest.fixture(scope="session")
def classic(packages: Callable[[str], Sequence[Path]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an ActiveMQ Classic."""
    jars, (port,) = packages("org.apache.activemq:activemq-broker:5.19.0"), free_ports(1)
    program = JARS.parent / "tests" / "integration" / "connectors" / "ClassicBroker.java"
    command = [str(find_java()), "-cp", os.pathsep.join(map(str, jars)), str(program), str(port)]
    folder = tmp_path_factory.mktemp("classic")
    with (folder / "log").open("wb") as log:
        broker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=folder)
    assert broker.stdin is not None
    assert broker.stdout is not None
    with broker.stdin, broker.stdout:
        assert broker.stdout.readline() == b"ready\n", (folder / "log").read_text()
        yield f"tcp://127.0.0.1:{port}"
    broker.wait(60)


@pytest.fixture(params=["artemis", "artemis by jakarta", "artemis by jndi", "qpid", "classic"])
def keys(request: pytest.FixtureRequest, artemis: EmbeddedArtemis) -> Settings:
    """The keys of a source or sink, for each client and broker."""
    own = client(artemis.core_url)
    if request.param in ("artemis", "artemis by jndi"):
        request.getfixturevalue("fast_core")
    if request.param == "artemis by jakarta":
        jars = request.getfixturevalue("packages")(f"org.apache.artemis:artemis-jakarta-client:{version()}")
        return own | {".class-path": ",".join(map(str, jars))}
    if request.param == "artemis by jndi":
        return {
            ".type": "jms",
            ".class-path": own[".class-path"],
            ".jndi.java.naming.factory.initial": "org.apache.activemq.artemis.jndi.ActiveMQInitialContextFactory",
            ".jndi.connectionFactory.CF": artemis.core_url,
            ".jndi.connection-factory": "CF",
        }
    lib = artemis_home(JARS) / "lib"
    if request.param == "qpid":
        parts = ("qpid-jms-*", "proton-j-*", "netty-*", "slf4j-*", "log4j-*")
        path = {".class-path": ", ".join(f"{lib}/{part}.jar" for part in parts)}
        url = {".connection-factory.remoteURI": artemis.amqp_url}
        return {".type": "jms", **path, ".connection-factory": QPID, **url}
    url = {".connection-factory.brokerURL": request.getfixturevalue("classic")}
    path = {".class-path": f"{lib}/activemq-client-*.jar, {lib}/hawtbuf-*.jar, {lib}/slf4j-*.jar"}
    return {".type": "jms", **path, ".connection-factory": CLASSIC, **url}


def version() -> str:
    return artemis_home(JARS).name.removeprefix("apache-artemis-")


def test_every_client_carries_bodies_fields_and_types(
    keys: Settings, ends: MakeEnds, queue: str, request: pytest.FixtureRequest
) -> None:
    both = ends(keys)
    both.sink.connect()
    later = str(int(time.time() * 1000) + 3_600_000)
    headers = {
        "JMSCorrelationID": "c:1",
        "JMSType": "new",
        "JMSPriority": "7",
        "JMSXGroupID": "group",
        "JMSDeliveryMode": "NON_PERSISTENT",
        "JMSExpiration": later,
        "JMSReplyTo": "queue:replies",
    }
    properties = {
        "on": Property("true", JmsType.BOOLEAN),
        "small": Property("-5", JmsType.BYTE),
        "short": Property("300", JmsType.SHORT),
        "number": Property("70000", JmsType.INT),
        "large": Property(str(1 << 40), JmsType.LONG),
        "single": Property("0.1", JmsType.FLOAT),
        "double": Property("1e+300", JmsType.DOUBLE),
        "text": Property("grüße \u20ac", JmsType.STRING),
    }
    types = "a=int,b=string,c=bytes,d=double,e=boolean,f=char"
    first = Message("grüße \u20ac\n".encode(), BodyType.TEXT, headers, properties)
    others = [
        Message(bytes(range(256)), BodyType.BYTES),
        Message(b'{"a":5,"b":"x","c":"AQI=","d":1.5,"e":true,"f":"y"}', BodyType.MAP, body_types=types),
        Message(b'[5,"x","AQI=",1.5,true]', BodyType.STREAM, body_types="long,string,bytes,double,boolean"),
        Message(b""),
        Message(b"x" * 500_000),
    ]
    is_opaque = "qpid" not in request.node.callspec.id
    objects = [Message(SERIALIZED, BodyType.OBJECT)] if is_opaque else []
    sent = [first, *others, *objects]
    assert both.send(f"queue/{queue}", *sent) == dict.fromkeys(range(len(sent)))

    both.source.connect()
    # Between priorities and delivery modes JMS promises no order (Jakarta Messaging 3.1, 6.2.9): a queue of ActiveMQ
    # Classic has persistent messages and others in places of their own, so a Java client gets the first one last, too.
    found = sorted(both.receive(len(sent)), key=lambda message: "number" not in message.properties)

    assert [(each.body_type, each.body) for each in found] == [(each.body_type, each.body) for each in sent]
    assert dict(pair.split("=") for pair in found[2].body_types.split(",")) == dict(
        pair.split("=") for pair in types.split(",")
    )
    assert found[3].body_types == others[2].body_types
    own = {name: value for name, value in found[0].properties.items() if not name.startswith(("JMS", "_AMQ"))}
    assert own == properties
    same = {name: found[0].headers[name] for name in headers if name != "JMSExpiration"}
    assert same == {name: text for name, text in headers.items() if name != "JMSExpiration"}
    assert abs(int(found[0].headers["JMSExpiration"]) - int(later)) < 10_000
    assert found[0].headers["JMSDestination"] == f"queue:{queue}"
    assert found[0].headers["JMSMessageID"].startswith("ID:")
    both.close()
    again = ends(keys)
    again.source.connect()
    assert again.source.receive(1) is None


def test_every_client_keeps_names_kinds_of_empty_bodies_and_ids_in_bytes(
    keys: Settings, ends: MakeEnds, queue: str
) -> None:
    both = ends(keys)
    both.sink.connect()
    both.source.connect()
    names = ("NOT", "in", "content-type", "X-Request-Id", "trace-id", "trace.id", "größe", "1 st", "a_DOT_b")
    properties = {name: Property(name, JmsType.STRING) for name in names}
    binary = "ID:AMQP_BINARY:010203FF"
    sent = [
        Message(b"x", headers={"JMSCorrelationID": binary}, properties=properties, spellings={"trace_id": "trace-id"}),
        Message(headers={"JMSCorrelationID": "ID:c:1"}, body_types="none"),
        Message(body_types="null"),
        Message(),
        Message(body_type=BodyType.BYTES),
    ]
    assert both.send(f"queue/{queue}", *sent) == dict.fromkeys(range(len(sent)))

    found = both.receive(len(sent))
    assert {name: found[0].lookup(name) for name in names} == properties
    assert found[0].lookup("trace_id") == properties["trace-id"]
    assert [each.headers.get("JMSCorrelationID") for each in found[:3]] == [binary, "ID:c:1", None]
    kinds = [(each.body, each.body_type, each.body_types) for each in found]
    assert kinds == [(each.body, each.body_type, each.body_types) for each in sent]


@by_core
def test_a_correlation_id_in_bytes_is_one_again_for_a_jms_application(
    artemis: EmbeddedArtemis, ends: MakeEnds, queue: str, tmp_path: Path
) -> None:
    both = ends(client(artemis.core_url))
    both.sink.connect()
    both.source.connect()
    application = JmsClient(artemis.core_url, tmp_path / "log")
    application.identified(queue, b"\1\2\3")
    (found,) = both.receive(1)
    assert found.headers["JMSCorrelationID"] == "ID:AMQP_BINARY:010203"
    both.source.close()

    assert both.send(f"queue/{queue}", found, Message(headers={"JMSCorrelationID": "ID:AMQP_BINARY:x"})) == {
        0: None,
        1: None,
    }
    binary, text = application.receive(f"queue:{queue}"), application.receive(f"queue:{queue}")
    application.close()
    assert binary["JMSCorrelationIDAsBytes"] == "010203"
    assert "text" not in binary
    assert text["JMSCorrelationID"] == "ID:AMQP_BINARY:x"


def test_every_client_gives_back_what_was_not_acknowledged(keys: Settings, ends: MakeEnds, queue: str) -> None:
    both = ends(keys)
    both.sink.connect()
    both.send(f"queue/{queue}", *[Message(str(n).encode()) for n in range(100)])
    both.source.connect()
    found: list[Any] = []
    until(lambda: found.append(both.source.receive(0.5)) or len([each for each in found if each]) == 100)  # type: ignore[func-returns-value]
    both.source.acknowledge([each.token for each in found if each][:37])
    both.source.close()

    both.source.connect()
    assert [each.body for each in both.receive(63)] == [str(n).encode() for n in range(37, 100)]


def test_a_durable_subscription_keeps_what_a_selector_wants(keys: Settings, ends: MakeEnds, queue: str) -> None:
    both = ends(keys, f"topic:{queue}", subscription="sub", selector="region = 'emea'")
    both.source.connect()
    both.source.close()
    both.sink.connect()
    regions = ["emea", "apac", "emea"]
    sent = [Message(str(n).encode(), properties={"region": Property(to)}) for n, to in enumerate(regions)]
    both.send(f"topic/{queue}", *sent)
    both.source.connect()
    found = both.receive(2)
    assert [each.body for each in found] == [b"0", b"2"]
    assert found[0].headers["JMSDestination"] == f"topic:{queue}"


@by_core
def test_delayed_messages_come_when_it_is_time(artemis: EmbeddedArtemis, ends: MakeEnds, queue: str) -> None:
    both = ends(client(artemis.core_url))
    both.sink.connect()
    both.source.connect()
    at = int(time.time() * 1000) + 3000
    both.send(f"queue/{queue}", Message(b"late", headers={"JMSDeliveryTime": str(at)}), Message(b"now"))
    assert [each.body for each in both.receive(2)] == [b"now", b"late"]
    assert time.time() * 1000 >= at


@by_core
def test_workers_share_a_subscription(artemis: EmbeddedArtemis, ends: MakeEnds, queue: str) -> None:
    own = client(artemis.core_url)
    settings = {"subscription": "both", "shared_subscription": "true", "workers": "2"}
    one, other = ends(own, f"topic:{queue}", **settings), ends(own, f"topic:{queue}", **settings)
    one.source.connect()
    other.source.connect()
    one.sink.connect()
    one.send(f"topic/{queue}", *[Message(str(n).encode()) for n in range(20)])
    found: list[int] = []

    def taken() -> bool:
        for each in (one, other):
            if (delivery := each.source.receive(0.1)) is not None:
                found.append(int(delivery.message.body))
                each.source.acknowledge([delivery.token])
        return len(found) == 20

    until(taken)
    assert sorted(found) == list(range(20))


@by_core
def test_an_application_that_waits_at_a_temporary_queue_gets_its_reply(
    artemis: EmbeddedArtemis, ends: MakeEnds, queue: str, tmp_path: Path
) -> None:
    application = JmsClient(artemis.core_url, tmp_path / "application.log")
    try:
        both = ends(client(artemis.core_url))
        both.source.connect()
        both.sink.connect()
        application.request(queue, "question")
        (request,) = both.receive(1)
        assert both.send(request.headers["JMSReplyTo"], Message(b"answer")) == {0: None}
        assert application.reply()["text"] == "answer"
    finally:
        application.close()


@by_core
def test_a_refused_login_is_told_with_a_longer_wait_and_without_the_password(
    strict: StrictArtemis, ends: MakeEnds, queue: str
) -> None:
    own = client(strict.core_url)
    wrong = ends(own | {".username": USER, ".password": "hunter2-x"})
    with pytest.raises(NotConnectedError) as refused:
        wrong.source.connect()
    assert refused.value.back_off_seconds is not None
    assert "hunter2-x" not in str(refused.value)

    right = ends(own | {".username": USER, ".password": PASSWORD})
    right.sink.connect()
    # One message that the broker refuses keeps no other back.
    assert right.send(f"queue/{queue}", Message(b"1")) == {0: None}
    (refusal,) = right.send("queue/secret.x", Message(b"2")).values()
    assert refusal is not None
    assert "secret.x" in refusal
    process = right.sink._process._process
    assert process is not None
    shown = Path(f"/proc/{process.pid}/cmdline").read_bytes() + Path(f"/proc/{process.pid}/environ").read_bytes()
    assert PASSWORD.encode() not in shown


@by_core
def test_what_no_attempt_can_mend_is_refused(artemis: EmbeddedArtemis, ends: MakeEnds) -> None:
    own = client(artemis.core_url)
    jndi = {
        ".type": "jms",
        ".class-path": own[".class-path"],
        ".jndi.java.naming.factory.initial": "org.apache.activemq.artemis.jndi.ActiveMQInitialContextFactory",
        ".jndi.queue.Q": "q",
        ".jndi.connection-factory": "Q",
    }
    with pytest.raises(HardFailureError, match="which is not a connection factory of"):
        ends(jndi).source.connect()
    missing = ends(own | {".class-path": own[".class-path"].split(",")[0]})
    with pytest.raises(HardFailureError, match="NoClassDefFoundError: org/slf4j"):
        missing.source.connect()


@by_core
def test_the_doctor_connects(artemis: EmbeddedArtemis, ends: MakeEnds) -> None:
    endpoint = ends(client(artemis.core_url)).source._endpoint
    system = connector(endpoint.settings.type)
    assert "ActiveMQ 2" in system.check_connection(endpoint, "doctor")
    away = replace(endpoint.settings, properties={"brokerURL": "tcp://127.0.0.1:1"})
    with pytest.raises(NotConnectedError):
        system.check_connection(replace(endpoint, settings=away), "doctor")


def test_a_client_that_is_killed_is_a_connection_that_broke(
    jms: JmsHarness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(jms.settings(queue))
    jms.send(queue, numbered(2000))
    source = start(config)
    until(lambda: source.count("acknowledged") > 0)
    os.kill(child(), signal.SIGKILL)
    until(lambda: source.count("reconnects") == 1)
    jms.send(queue, numbered(100, begin=2000))
    until(lambda: jms.waiting(queue) == 0)
    source.stop()
    assert source.error is None
    assert sorted(numbers(kafka.bootstrap, config.journal.topic)) == list(range(2100))


def test_a_client_that_is_out_of_memory_is_a_connection_that_broke(
    jms: JmsHarness, configured: Configure, start: Start, queue: str
) -> None:
    config = configured(jms.settings(queue) | {".heap": "32MiB"})
    jms.send(queue, [replace(each, body=b"x" * 24 * 1024 * 1024) for each in numbered(1)])
    source = start(config)
    until(lambda: source.status.current.state is State.DEGRADED)
    assert "OutOfMemoryError" in source.status.current.detail
    assert source.alive


def test_class_paths_have_each_jar_once(tmp_path: Path) -> None:
    for name in ("a.jar", "b.jar", "notes.txt"):
        (tmp_path / name).touch()
    assert files([f"{tmp_path}/*", f"{tmp_path}/a.jar"]) == [tmp_path / "a.jar", tmp_path / "b.jar"]
    with pytest.raises(SetupError, match="no file for"):
        files([f"{tmp_path}/c*.jar"])
