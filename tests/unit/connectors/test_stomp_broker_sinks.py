"""What brokers do in their own way with the messages of a sink over STOMP."""

from __future__ import annotations

import socket
import threading
import time
from typing import cast

import pytest

from engine.connectors.base import NotConnectedError, Outgoing
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.products import product_of
from engine.connectors.stomp import sink as stomp_sink
from engine.connectors.stomp.frames import StompFrame
from engine.connectors.stomp.sink import SentMessage, StompSink
from engine.connectors.stomp.traits import traits_of
from engine.connectors.system import connector
from engine.message import Message
from routes.config import loads

CLASSIC_SAYS, RABBITMQ_SAYS, OPENMQ_SAYS = "ActiveMQ/5.18.3", "RabbitMQ/3.10.8", "Eclipse OpenMQ(tm)"


class Taker:
    """Accepts connections one after the other; answers each SEND with its receipt, but a body `bad` with an ERROR."""

    def __init__(self, server: str, *, names_messages: bool) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._server, self._names = server, names_messages
        self.accepted: list[bytes] = []
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        connection.sendall(f"CONNECTED\nversion:1.2\nheart-beat:0,0\nserver:{self._server}\n\n\0".encode())
        rest = b""
        while data := connection.recv(65536):
            *frames, rest = (rest + data).split(b"\0")
            for each in frames:
                head, _, body = each.partition(b"\n\n")
                receipt = next((line[8:].decode() for line in head.splitlines() if line.startswith(b"receipt:")), "")
                if body == b"bad":
                    named = f"receipt-id:{receipt}\n" if self._names else ""
                    connection.sendall(f"ERROR\nmessage:not this one\n{named}\n\0".encode())
                    return
                if b"SEND" in head:
                    self.accepted.append(body)
                connection.sendall(f"RECEIPT\nreceipt-id:{receipt}\n\n\0".encode())

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)


def frame(command: str, **headers: str) -> StompFrame:
    return StompFrame(command, {name.replace("_", "-"): text for name, text in headers.items()}, b"", 0)


def judged(server: str, *attempts: tuple[dict[int, str], StompFrame]) -> list[tuple[float | None, dict[int, str]]]:
    """The shortest pauses and the refusals after each ERROR about messages under way, given as number and address."""
    lines = ("sink.o.type=stomp", "source.s.type=stomp", "source.s.destinations=queue:a", "bridge.id=b")
    config = loads("\n".join((*lines, "routes.a.in.include=TRUE", "routes.a.out.topic=o:queue/a")))
    sink = connector(config.sinks[0].type).make_sink(SystemEndpoint.of(config, config.sinks[0]), 1)
    assert isinstance(sink, StompSink)
    sink._session.traits = traits_of(product_of(server), server)
    found = []
    for under_way, answer in attempts:
        sink._failure = None
        sink._open = {number: SentMessage(address, 100) for number, address in under_way.items()}
        sink._take(answer)
        refusals = {outcome.number: outcome.refusal for outcome in sink._known if outcome.refusal}
        sink._known.clear()
        failure = cast("NotConnectedError | None", sink._failure)
        found.append((failure.back_off_seconds if failure else 0.0, refusals))
    return found


ARTEMIS_SAYS = "ActiveMQ-Artemis/2.56.0 ActiveMQ Artemis Messaging Engine"
NOT_SENT = "AMQ339011: Error sending"


@pytest.mark.parametrize(
    ("server", "text", "named"),
    [
        (ARTEMIS_SAYS, "AMQ339001: Destination does not exist: x", True),
        (ARTEMIS_SAYS, "AMQ229032: User: b does not have permission='CREATE_ADDRESS' on address x", True),
        (RABBITMQ_SAYS, "Invalid destination", False),
        (RABBITMQ_SAYS, "not_found", False),
        (RABBITMQ_SAYS, "access_refused", False),
        (CLASSIC_SAYS, "User b is not authorized to write to: queue://x", True),
    ],
)
def test_a_destination_that_the_broker_refuses_is_the_refusal_of_its_message_at_once(
    server: str, text: str, named: bool
) -> None:
    about = {"receipt_id": "7"} if named else {}
    assert judged(server, ({7: "queue/x"}, frame("ERROR", message=text, **about))) == [
        (None, {7: f"the broker says: {text}"})
    ]


def test_unexplained_refusals_of_an_address_are_tried_again_for_its_first_message_alone() -> None:
    first = ({1: "queue/x", 2: "queue/x"}, frame("ERROR", message=NOT_SENT, receipt_id="1"))
    second = ({2: "queue/x"}, frame("ERROR", message=NOT_SENT, receipt_id="2"))

    found = judged(ARTEMIS_SAYS, first, first, first, second)

    assert [pause for pause, _ in found] == [None] * 4, "one sender's messages do not hold up the others"
    assert [list(refusals) for _, refusals in found] == [[], [], [1], [2]]


def test_a_full_address_is_waited_for() -> None:
    accepted = ({1: "queue/x"}, frame("RECEIPT", receipt_id="1"))
    full = ({2: "queue/x"}, frame("ERROR", message=NOT_SENT, receipt_id="2"))

    assert judged(ARTEMIS_SAYS, accepted, *[full] * 5)[1:] == [(None, {})] * 5


def test_messages_in_doubt_wait_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stomp_sink, "_DOUBT_SECONDS", 2.0)
    taker = Taker(ARTEMIS_SAYS, names_messages=True)
    lines = (f"sink.o.url=stomp://127.0.0.1:{taker.port}", "sink.o.type=stomp", "source.s.type=stomp")
    kept = ("source.s.destinations=queue:a", "bridge.id=b", "routes.a.in.include=TRUE", "routes.a.out.topic=o:queue/a")
    config = loads("\n".join((*lines, *kept)))
    sink = connector(config.sinks[0].type).make_sink(SystemEndpoint.of(config, config.sinks[0]), 1)
    left = {
        number: Outgoing(number, Message(body), f"queue/{address}", str(number))
        for number, (address, body) in enumerate([("x", b"bad"), ("x", b"behind"), *[("a", b"good")] * 500], 1)
    }
    outcomes: list[tuple[int, float]] = []
    pauses: list[float | None] = []
    began = time.monotonic()
    while left:
        sink.connect()
        try:
            sink.send(list(left.values()))
            while left:
                for outcome in sink.outcomes(0.1):
                    del left[outcome.number]
                    outcomes.append((outcome.number, time.monotonic() - began))
        except NotConnectedError as error:
            pauses.append(error.back_off_seconds)
    sink.close()
    taker.close()

    assert pauses == [None] * 3
    *good, (bad, bad_at), (behind, behind_at) = outcomes
    assert {number for number, _ in good} == set(range(3, 503))
    assert max(at for _, at in good) < 1.9, "they do not wait for the message in doubt"
    assert (bad, behind) == (1, 2), "messages to one address keep their order"
    assert behind_at >= bad_at > 4, "two more attempts, each after two seconds"


def test_an_error_about_no_message_is_waited_for() -> None:
    assert judged(ARTEMIS_SAYS, ({1: "queue/x"}, frame("ERROR", message="too many connections"))) == [(5.0, {})]


@pytest.mark.parametrize(("server", "names"), [(RABBITMQ_SAYS, False), (OPENMQ_SAYS, False), (CLASSIC_SAYS, True)])
def test_a_message_that_the_broker_refuses_does_not_hold_up_the_others(
    monkeypatch: pytest.MonkeyPatch, server: str, names: bool
) -> None:
    monkeypatch.setattr(stomp_sink, "_DOUBT_SECONDS", 0.2)
    taker = Taker(server, names_messages=names)
    lines = (f"sink.o.url=stomp://127.0.0.1:{taker.port}", "sink.o.type=stomp", "source.s.type=stomp")
    kept = ("source.s.destinations=queue:a", "bridge.id=b", "routes.a.in.include=TRUE", "routes.a.out.topic=o:queue/a")
    config = loads("\n".join((*lines, *kept)))
    sink = connector(config.sinks[0].type).make_sink(SystemEndpoint.of(config, config.sinks[0]), 1)
    bodies = [b"1", b"2", b"bad", b"4", b"5"]
    left = {number: Outgoing(number, Message(body), "queue/a", str(number)) for number, body in enumerate(bodies, 1)}
    refused, pauses = {}, [0.0]
    for _ in range(6):
        sink.connect()
        try:
            sink.send(list(left.values()))
            while left:
                for outcome in sink.outcomes(0.2):
                    del left[outcome.number]
                    if outcome.refusal:
                        refused[outcome.number] = outcome.refusal
        except NotConnectedError as error:
            pauses.append(error.back_off_seconds or 0)
            continue
        break
    sink.close()
    taker.close()

    assert max(pauses) < 1, "one sender's messages do not hold up the others"
    # None of these drops a message that comes again.
    assert sink.most_under_way == 1_000
    assert refused == {3: "the broker says: not this one"}
    assert set(taker.accepted) == {b"1", b"2", b"4", b"5"}
    assert not left
