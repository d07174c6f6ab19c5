"""`send`, `receive` and `request` at real brokers, through the connectors."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import nats as nats_py
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from engine.connectors.base import Outgoing
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.stomp.settings import StompSinkConfig, StompSourceConfig
from engine.connectors.stomp.system import SYSTEM
from engine.embedded import EmbeddedArtemis, EmbeddedNats
from engine.message import Message
from routes.config import load
from tests.commands import CommandResult, finished

JMS_BRIDGE = (sys.executable, "-m", "engine")
CONFIGURATION = """\
bridge.id=b1
source.jms.type=stomp
source.jms.url={artemis}
source.jms.destinations=queue:orders
sink.out.type=nats
sink.out.url={nats}
sink.archive.type=stomp
sink.archive.url={artemis}
routes.orders.in.include=msg.address==orders
routes.orders.out.topic=out:orders
"""
SENT = (
    *("--property", "region=emea", "--typed-property", "n:int=5", "--typed-property", "ok:boolean=true"),
    *("--correlation-id", "42", "--type", "greeting", "--priority", "7", "--header", "JMSXGroupID=g"),
)


Run = Callable[..., CommandResult]


@pytest.fixture
def name() -> str:
    """Of a queue, topic or subject that nobody else uses."""
    return f"n{uuid.uuid4().hex}"


@pytest.fixture
def configuration(tmp_path: Path, artemis: EmbeddedArtemis, nats: EmbeddedNats) -> Path:
    file = tmp_path / "jms-bridge.properties"
    file.write_text(CONFIGURATION.format(artemis=artemis.stomp_url, nats=nats.url))
    return file


@pytest.fixture
def run(configuration: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Calls a command as its process would."""

    return lambda *arguments: finished(capsys, *arguments, "-c", str(configuration))


@pytest.fixture
def listened(run: Run, configuration: Path) -> Callable[..., dict[str, Any]]:
    """What `receive` shows of a message that is sent again and again until it does."""

    def call(source: str, *send: str) -> dict[str, Any]:
        command = [*JMS_BRIDGE, "receive", source, "--count", "1", "--json", "-c", str(configuration)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            while process.poll() is None:
                assert run("send", *send).code == 0
                time.sleep(0.1)
            assert process.stdout is not None
            assert process.returncode == 0
            found: dict[str, Any] = json.loads(process.stdout.read())
        return found

    return call


@pytest.fixture
def stream(nats: EmbeddedNats, name: str) -> str:
    """A stream of that name with the subjects below it."""
    asyncio.run(_with_client(nats, lambda client: client.jetstream().add_stream(name=name, subjects=[f"{name}.>"])))
    return name


def headers(shown: dict[str, Any]) -> dict[str, str]:
    return {header["name"]: header["value"] for header in shown["headers"]}


EXPECTED = {
    "jms.region": "emea",
    "jms.n": "5",
    "jms.ok": "true",
    "jms.JMSCorrelationID": "42",
    "jms.JMSType": "greeting",
    "jms.JMSPriority": "7",
    "jms.JMSXGroupID": "g",
    "jmsbridge.body": "text",
}


@pytest.mark.parametrize("spelt", ["queue:{}", "stomp:queue/{}", "archive:queue/{}", "jms:queue:{}"])
def test_a_queue_has_what_was_sent_in_all_spellings(run: Run, name: str, artemis: EmbeddedArtemis, spelt: str) -> None:
    destination = spelt.format(name)
    sent = run("send", destination, "grüße", *SENT, "--reply-to", "topic:answers")
    assert sent == (0, "", f"sent 1 message to {destination} at {artemis.stomp_url}\n")
    shown = json.loads(run("receive", destination, "--count", "1", "--json").out)
    assert (shown["destination"], shown["body"]) == (destination, "grüße")
    expected = {**EXPECTED, "jms.JMSDestination": f"queue:{name}", "jms.JMSReplyTo": "topic:answers"}
    assert expected.items() <= headers(shown).items()
    assert run("receive", destination, "--timeout", "500ms").err == f"no messages in {destination}\n"


def test_a_queue_has_over_amqp_what_was_sent_with_its_types(run: Run, name: str, artemis: EmbeddedArtemis) -> None:
    at = ("--url", artemis.amqp_url)
    sent = run("send", f"amqp:queue/{name}", *SENT, "--header", "JMSMessageID=ID:mine", *at, "hello")
    assert (sent.code, sent.err) == (0, f"sent 1 message to amqp:queue/{name} at {artemis.amqp_url}\n")

    found = json.loads(run("receive", f"queue:{name}", *at, "--count", "1", "--json").out)

    assert found["body"] == "hello"
    assert headers(found)["jms.JMSMessageID"] == "ID:mine"
    assert headers(found)["jms.n"] == "5"
    assert {"n=int", "ok=boolean"} <= set(headers(found)["jmsbridge.types"].split(","))


@pytest.mark.usefixtures("impatient")
def test_what_refuses_over_amqp_is_one_line(run: Run, name: str, artemis: EmbeddedArtemis) -> None:
    found = run("send", f"amqp:queue/{name}", "--url", artemis.stomp_url.replace("stomp", "amqp"), "hello")
    assert found.code != 0
    assert len(found.err.splitlines()) == 1
    assert "AMQP port?" in found.err


def test_a_topic_gives_what_is_published_while_somebody_listens(listened: Callable[..., Any], name: str) -> None:
    shown = listened(f"stomp:topic/{name}", f"topic:{name}", "7", *SENT)
    assert shown["body"] == "7"
    assert {**EXPECTED, "jms.JMSDestination": f"topic:{name}"}.items() <= headers(shown).items()


@pytest.mark.parametrize(("form", "typed"), [("headers", True), ("json", False), ("typed", True)])
def test_a_subject_gives_what_is_published_while_somebody_listens(
    listened: Callable[..., Any], name: str, form: str, typed: bool
) -> None:
    shown = listened(f"nats:{name}.>", f"out:{name}.eu", "7", *SENT, "--reply-to", f"nats:{name}.re", "--format", form)
    found = headers(shown)
    assert shown["body"] == "7"
    assert (found["jms.JMSDestination"], found["jms.JMSReplyTo"]) == (f"topic:{name}.eu", f"topic:{name}.re")
    assert {"jms.region": "emea", "jms.n": "5", "jms.ok": "true"}.items() <= found.items()
    if typed:
        assert {"n=int", "ok=boolean"} <= set(found["jmsbridge.types"].split(","))


def test_a_body_alone_is_sent_raw(listened: Callable[..., Any], name: str, tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(b"\x00\xff")
    shown = listened(f"nats:{name}", f"nats:{name}", "--body-file", str(tmp_path / "body"), "--format", "raw")
    assert shown["body_base64"] == "AP8="


def test_a_stream_keeps_what_was_sent_and_is_not_changed_by_who_looks(
    run: Run, stream: str, nats: EmbeddedNats
) -> None:
    assert run("send", f"nats:{stream}.eu", "7", *SENT, "--stream", "--count", "30").err.startswith("sent 30 messages")
    assert run("send", f"nats:{stream}.us", "8", "--stream").code == 0
    for _ in range(2):
        shown = [
            json.loads(line)
            for line in run("receive", f"out:{stream}.eu", "--stream", stream, "--json").out.splitlines()
        ]
        assert [each["body"] for each in shown] == ["7"] * 30
        assert len({headers(each)["jms.JMSMessageID"] for each in shown}) == 30
        assert {**EXPECTED, "jms.JMSXDeliveryCount": "1"}.items() <= headers(shown[0]).items()
        assert headers(shown[0])["jmsbridge.types"] == "n=int,ok=boolean"
    assert len(run("receive", f"nats:{stream}.*", "--stream", stream, "-n", "31", "--json").out.splitlines()) == 31
    assert asyncio.run(_with_client(nats, lambda client: client.jetstream().consumers_info(stream))) == []


@pytest.mark.parametrize("kept", [True, False])
def test_following_ends_with_ctrl_c_and_leaves_nothing_behind(
    run: Run, configuration: Path, stream: str, nats: EmbeddedNats, kept: bool
) -> None:
    command = [*JMS_BRIDGE, "receive", f"nats:{stream}.eu", "--follow", "--json", "-c", str(configuration)]
    command += ["--stream", stream] if kept else []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        came: list[str] = []
        with _beside(lambda: came.append(process.stdout.readline() if process.stdout else ""), Event()):
            while not came and process.poll() is None:
                assert run("send", f"nats:{stream}.eu", "7").code == 0
                time.sleep(0.1)
        assert json.loads(came[0])["body"] == "7"
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        assert process.stderr.read() == ""
    assert asyncio.run(_with_client(nats, lambda client: client.jetstream().consumers_info(stream))) == []


def test_many_messages_are_sent_at_once(run: Run, stream: str, name: str) -> None:
    began = time.monotonic()
    for destination in (f"nats:{stream}.eu", f"nats:x.{name}", f"queue:{name}"):
        flag = ["--stream"] if destination.startswith(f"nats:{stream}") else []
        assert run("send", destination, "x", "--count", "5000", *flag).err.startswith("sent 5000 messages")
    assert time.monotonic() - began < 20
    assert len(run("receive", f"queue:{name}", "-n", "5000", "--json").out.splitlines()) == 5000


def test_what_a_broker_refuses_is_one_line(run: Run, name: str, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(10_000_000))
    for arguments, said in (
        (("send", f"nats:{name}", "x", "--stream"), f" refuses the message: no stream takes subject '{name}'\n"),
        (("receive", f"nats:{name}", "--stream", name), f"stream '{name}' at nats://127.0.0.1:"),
        (
            ("send", f"nats:{name}", "--body-file", str(tmp_path / "large")),
            "bytes with headers are more than the 9437184",
        ),
    ):
        result = run(*arguments)
        assert (result.code, result.out, result.err.count("\n")) == (4, "", 1)
        assert said in result.err


@pytest.mark.usefixtures("impatient")
def test_a_port_of_another_system_is_told_as_such(run: Run, artemis: EmbeddedArtemis, nats: EmbeddedNats) -> None:
    result = run("send", "queue:a", "x", "--url", nats.url.replace("nats:", "stomp:"))
    assert (result.code, result.err.count("\n")) == (6, 1)
    assert "is this its STOMP port?" in result.err
    result = run("send", "nats:a", "x", "--url", artemis.stomp_url.replace("stomp:", "nats:"))
    assert (result.code, result.err.count("\n")) == (6, 1)
    assert "is this its client port?" in result.err


def test_a_request_over_nats_shows_the_reply(run: Run, name: str, nats: EmbeddedNats) -> None:
    with nats_responder(nats, name):
        reply = run("request", f"nats:{name}", "EURUSD", "--property", "region=emea")
        assert reply == (0, "EURUSD emea\n", "")
        full = run("request", f"out:{name}", "EURUSD", "--property", "region=emea", "--full", "--timeout", "10s")
        assert "  jms.answered        yes\n" in full.out
        shown = json.loads(run("request", f"nats:{name}", "-p", "region=us", "--json").out)
    assert (shown["body"], headers(shown)["jms.answered"]) == (" us", "yes")
    assert headers(shown)["jms.JMSDestination"].startswith("topic:_INBOX.")


@pytest.mark.parametrize("known_by", ["JMSCorrelationID", "JMSMessageID"])
def test_a_request_over_stomp_shows_the_reply(run: Run, name: str, configuration: Path, known_by: str) -> None:
    with stomp_responder(configuration, name, known_by):
        for correlation_id in ((), ("--correlation-id", "42")):
            reply = run("request", f"queue:{name}", "EURUSD", *correlation_id)
            assert reply == (0, "re: EURUSD\n", "")


def test_a_request_over_amqp_shows_the_reply(
    run: Run, name: str, configuration: Path, artemis: EmbeddedArtemis
) -> None:
    with stomp_responder(configuration, name, "JMSCorrelationID"):
        reply = run("request", f"amqp:queue/{name}", "EURUSD", "--url", artemis.amqp_url)
    assert reply == (0, "re: EURUSD\n", "")


def test_a_reply_to_something_else_is_passed_over(run: Run, name: str, configuration: Path) -> None:
    with stomp_responder(configuration, name, "JMSCorrelationID", before="another"):
        reply = run("request", f"queue:{name}", "EURUSD", "--correlation-id", "42")
    assert reply == (0, "re: EURUSD\n", "passed over a message with correlation id another, not 42\n")


@pytest.mark.parametrize("scheme", ["nats", "queue"])
def test_a_request_without_a_reply_ends_with_a_code_of_its_own(run: Run, name: str, scheme: str) -> None:
    result = run("request", f"{scheme}:{name}", "x", "--timeout", "0.3s")
    assert (result.code, result.out, result.err.count("\n")) == (7, "", 1)
    assert f"jms-bridge: no reply from {scheme}:{name} at " in result.err
    assert "in 0.3 s; does a service answer it" in result.err


@contextmanager
def nats_responder(nats: EmbeddedNats, subject: str) -> Iterator[None]:
    """Answers with the body and a header of the request."""
    ready, stop = Event(), Event()

    async def answer(message: Msg) -> None:
        text = message.data.decode() + " " + (message.headers or {})["region"]
        await message._client.publish(message.reply, text.encode(), headers={"answered": "yes"})

    async def serve(client: Client) -> None:
        await client.subscribe(subject, cb=answer)
        await client.flush()
        ready.set()
        while not stop.is_set():
            await asyncio.sleep(0.01)

    with _beside(lambda: asyncio.run(_with_client(nats, serve)), stop):
        assert ready.wait(10)
        yield


@contextmanager
def stomp_responder(configuration: Path, queue: str, known_by: str, before: str = "") -> Iterator[None]:
    """Answers with the body of the request, and the correlation id that JMS or its users would give."""
    config = load(configuration)
    url = config.sources[0].url
    taking = StompSourceConfig(
        name="in", type=SYSTEM, url=url, destinations=(f"queue:{queue}",), client_id=f"in-{queue}"
    )
    giving = StompSinkConfig(name="out", type=SYSTEM, url=url, topic="", client_id=f"out-{queue}")
    stop = Event()

    def serve() -> None:
        source = SYSTEM.make_source(SystemEndpoint.of(config, taking), 1)
        sink = SYSTEM.make_sink(SystemEndpoint.of(config, giving), 1)
        source.connect()
        sink.connect()
        number = 0
        while not stop.is_set():
            if (delivery := source.receive(0.05)) is None:
                continue
            asked = delivery.message
            for known in filter(None, (before, asked.headers[known_by])):
                number += 1
                reply = Message(b"re: " + asked.body, headers={"JMSCorrelationID": known})
                sink.send([Outgoing(number, reply, asked.headers["JMSReplyTo"], uuid.uuid4().hex)])
            source.acknowledge([delivery.token])
        source.close()
        sink.close()

    with _beside(serve, stop):
        yield


@contextmanager
def _beside(work: Callable[[], object], stop: Event) -> Iterator[None]:
    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(10)
    assert not thread.is_alive()


async def _with_client(nats: EmbeddedNats, work: Callable[[Client], Any]) -> Any:
    client = await nats_py.connect(nats.url)
    try:
        return await work(client)
    finally:
        await client.close()
