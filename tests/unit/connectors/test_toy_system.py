"""A new system needs its own folder and one line of the registry, here `tests/unit/connectors/toy`."""

from __future__ import annotations

from inspect import isfunction, signature
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from engine.cli.destination import broker_destination
from engine.cli.exchange import give, take
from engine.connectors.base import Outgoing, Sink, Source
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.system import connector
from engine.delivery.ingress_pipeline import IngressPipeline
from engine.delivery.replies import listener
from engine.doctor.brokers import broker_check
from engine.doctor.checks import Severity, ok
from engine.message import Message
from engine.supervision.parts import parts
from engine.telemetry.meters import SourceMetrics
from routes.config import diff, lint_text, loads, reference, show
from routes.systems import SYSTEMS, all_systems, system_named
from tests.unit.connectors.toy.system import SERVERS, ToySinkConfig, ToySourceConfig, start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PLAIN = """\
bridge.id=b1
kafka.bootstrap.servers=127.0.0.1:9
routes.a.in.include=TRUE
routes.a.out.topic=t:box-2
"""
SOURCE = "source.s.type=toy\nsource.s.url=toy://h\nsource.s.destinations=box-1\n"
SINK = "sink.t.type=toy\nsink.t.url=toys://h:9\n"
URL = "toy://h:7"


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The one line."""
    monkeypatch.setitem(SYSTEMS, "toy", "tests.unit.connectors.toy.system")
    yield
    SERVERS.clear()


def told(text: str) -> list[str]:
    return [f"{fault.line}:{fault.column}: {fault.message}; {fault.hint}" for fault in lint_text(text).faults]


def test_its_keys_are_read_into_settings_of_its_own() -> None:
    more = "source.s.most=3\nsource.s.option.colour=red\nsource.s.option.deep.name=x\nsource.s.password=p\n"
    config = loads(PLAIN + SOURCE + SINK + more + "source.s.username=u\nsink.t.lid=blue\nsink.t.reply-to=box-9\n")
    (source,), (sink,) = config.sources, config.sinks
    assert isinstance(source, ToySourceConfig)
    assert isinstance(sink, ToySinkConfig)
    assert (source.type, source.url, source.destinations, source.most) == ("toy", URL, ("box-1",), 3)
    assert source.options == {"colour": "red", "deep.name": "x"}
    assert source.secrets == ("p",)
    assert (sink.lid, sink.topic, sink.options, config.url(sink)) == ("blue", "jms-bridge.sink.t", {}, "toys://h:9")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("source.s.most=11\n", "8:15: '11' is not a whole number from 1 to 10; "),
        ("source.s.most=7\n", "8:15: seven is too many; take six"),
        ("source.s.mosst=1\n", "8:1: unknown key 'source.s.mosst'; did you mean 'source.s.most'?"),
        (
            "source.s.selector=a = 1\n",
            "8:1: 'source.s.selector' is for type stomp, amqp or jms, not toy; remove the line",
        ),
        ("sink.q.type=nats\nsink.q.lid=x\n", "9:1: 'sink.q.lid' is for type toy, not nats; remove the line"),
        ("sink.u.type=toy\n", "8:1: sink 'u' has no 'sink.u.url'; as in sink.u.url=toy://host:port"),
        (
            "sink.u.type=toy\nsink.u.url=amqp://h\n",
            "9:12: 'amqp://h:5672' is not a URL for type toy; write toy://host:port or toys://host:port",
        ),
        ("source.s.tls.ca=x\n", "8:1: 'source.s.tls.ca' has no effect without TLS; write source.s.url=toys://…"),
    ],
)
def test_its_faults_are_found_at_their_place(text: str, fault: str) -> None:
    plain = PLAIN.replace("t:box-2", "x")
    assert fault in told(plain + SOURCE + text)


def test_routes_know_its_addresses() -> None:
    (fault,) = told((PLAIN + SOURCE + SINK).replace("t:box-2", "toy:shelf"))
    assert fault == "4:20: 'shelf' is not a destination of type toy; box-NUMBER, as in toy:box-1"
    assert str(loads((PLAIN + SOURCE + SINK).replace("t:box-2", "toy:box-3")).routes[0].targets[0]) == "t:box-3"


def test_a_key_ends_in_a_star_beside_others_that_begin_alike() -> None:
    plain = PLAIN.replace("t:box-2", "x") + SOURCE
    keys = {"option": "small", "option.size": "3", "option.size.unit": "mm", "option.password": "secret"}
    (source,) = loads(plain + "".join(f"source.s.{key}={value}\n" for key, value in keys.items())).sources
    assert isinstance(source, ToySourceConfig)
    assert (source.preset, source.size, dict(source.options)) == ("small", 3, {"size.unit": "mm", "password": "secret"})
    assert source.secrets == ("secret",)
    assert "secret" not in repr(source)
    assert told(plain + "source.s.option.size=10\n") == ["8:22: '10' is not a whole number from 1 to 9; "]


def test_its_keys_are_documented_shown_and_compared(tmp_path: Path) -> None:
    assert "| `source.NAME.most` | 1 to 10 | `2` | How many messages are taken at a time. |" in reference()
    assert "| `sink.NAME.lid` | name | none |" in reference()
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text(PLAIN + SOURCE + SINK + "source.s.option.colour=red\n")
    new.write_text(PLAIN + SOURCE + SINK + "source.s.option.colour=blue\nsource.s.most=2\n")
    assert [(each.key, each.old, each.new) for each in diff(old, new)] == [("source.s.option.colour", "red", "blue")]
    assert ("source.s.most", "2", "line 11") in [(row.key, row.value, row.origin) for row in show(new)]


def test_the_doctor_asks_its_server() -> None:
    config = loads(PLAIN + SOURCE + SINK)
    start(URL)
    (source,), (sink,) = (list(broker_check(config, each, 5, running=False).look()) for each in config.brokers)
    assert source == ok("source:s", f"{URL} plays along")
    assert (sink.state, sink.found) == (Severity.FAILED, "toys://h:9: nobody plays there")
    assert sink.remedy == "start the broker, or correct sink.t.url and sink.t.tls.*"


class Journal:
    """A journal that has every message at once."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def append(self, message: Message, done: Callable[[Exception | None], None], *_: object) -> bool:
        self.messages.append(message)
        done(None)
        return True

    def poll(self, timeout_seconds: float = 0) -> None: ...

    def hurry(self) -> None: ...

    def flush(self, timeout_seconds: float) -> bool:
        return True


def test_a_message_goes_through_its_source_into_the_journal_and_out_of_its_sink() -> None:
    config = loads(PLAIN + SOURCE + SINK)
    start(URL)["box-1"] = [Message(b"hello")]
    there = start("toys://h:9")
    source = connector(config.sources[0].type).make_source(SystemEndpoint.of(config, config.sources[0]), 1)
    source.connect()
    journal = Journal()
    pipeline = IngressPipeline(config, source, journal, None, SourceMetrics(CollectorRegistry(), "s", "source:s"))  # type: ignore[arg-type]
    pipeline.step()
    pipeline.settle()
    (message,) = journal.messages
    sink = connector(config.sinks[0].type).make_sink(SystemEndpoint.of(config, config.sinks[0]), 1)
    sink.connect()
    sink.send([Outgoing(1, message, "box-2", "id")])
    assert [outcome.number for outcome in sink.outcomes(0)] == [1]
    assert [each.body for each in there["box-2"]] == [b"hello"]


def test_it_is_sent_to_and_received_from_on_the_command_line() -> None:
    config = loads(PLAIN + SOURCE + SINK)
    boxes = start(URL)
    place = broker_destination(config, "toy:box-4", URL, None, to_send=True)
    give(place, SystemEndpoint.of(config, place.sink("me")), Message(b"x"), "")
    assert [each.body for each in boxes["box-4"]] == [b"x"]
    here = broker_destination(config, "s:box-4", None, None, to_send=False)
    assert [item.record.value for item in take(here, SystemEndpoint.of(config, here.source("me")), 1, 0.1)] == [b"x"]


def test_its_sinks_take_replies_and_its_parts_are_started() -> None:
    config = loads(PLAIN + SOURCE + SINK + "sink.t.reply-to=box-9\n")
    own = listener(config.sinks[0], "box-9")
    assert (type(own), own.name, own.destinations, config.url(own)) == (
        ToySourceConfig,
        "t.replies",
        ("box-9",),
        "toys://h:9",
    )
    assert [part.name for part in parts(config)] == ["router", "source:s", "sink:t"]


def test_the_classes_of_every_system_have_the_methods_of_the_contract() -> None:
    for system in map(connector, all_systems()):
        for contract, name in ((Source, system.source_class), (Sink, system.sink_class)):
            methods = {each: value for each, value in vars(contract).items() if isfunction(value) and each[0] != "_"}
            made = system._class(name) if name else contract
            assert {each: list(signature(getattr(made, each)).parameters) for each in methods} == {
                each: list(signature(value).parameters) for each, value in methods.items()
            }


def test_the_name_of_a_system_is_its_line_in_the_registry() -> None:
    assert [system_named(name) for name in SYSTEMS] == list(SYSTEMS)
