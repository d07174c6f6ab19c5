"""What brokers do in their own way with the messages of a sink over STOMP."""

from __future__ import annotations

import socket
import threading

import pytest

from engine.connectors.base import NotConnectedError, Outgoing
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


@pytest.mark.parametrize(("server", "names"), [(RABBITMQ_SAYS, False), (OPENMQ_SAYS, False), (CLASSIC_SAYS, True)])
def test_a_message_that_the_broker_refuses_does_not_hold_up_the_others(server: str, names: bool) -> None:
    taker = Taker(server, names_messages=names)
    lines = (f"sink.o.url=stomp://127.0.0.1:{taker.port}", "sink.o.type=stomp", "source.s.type=stomp")
    kept = ("source.s.destinations=queue:a", "bridge.id=b", "routes.a.in.include=TRUE", "routes.a.out.topic=o:queue/a")
    config = loads("\n".join((*lines, *kept)))
    sink = connector(config.sinks[0].type).make_sink(config, config.sinks[0], 1)
    bodies = [b"1", b"2", b"bad", b"4", b"5"]
    left = {number: Outgoing(number, Message(body), "queue/a", str(number)) for number, body in enumerate(bodies, 1)}
    refused = {}
    for _ in range(6):
        sink.connect()
        try:
            sink.send(list(left.values()))
            while left:
                for outcome in sink.outcomes(0.2):
                    del left[outcome.number]
                    if outcome.refusal:
                        refused[outcome.number] = outcome.refusal
        except NotConnectedError:
            continue
        break
    sink.close()
    taker.close()

    # None of these drops a message that comes again.
    assert sink.most_under_way == 1_000
    assert refused == {3: "the broker says: not this one"}
    assert set(taker.accepted) == {b"1", b"2", b"4", b"5"}
    assert not left
