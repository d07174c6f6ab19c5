"""When replies over NATS are read from a stream, and when they are only listened for."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from nats import errors

from engine.connectors.base import NotConnectedError
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.nats import replies
from engine.connectors.nats.connection import Connection, NotAllowedError
from engine.connectors.nats.replies import NatsReplies
from routes.config import loads

if TYPE_CHECKING:
    from engine.connectors.nats.settings import NatsSourceConfig

CONFIG = loads("""
bridge.id=b1
routes.a.in.include=TRUE
routes.a.out.topic=out
source.replies.type=nats
source.replies.destinations=bridge.replies.*
""")

STREAM = {"streams": ["REPLIES"]}
NOT_ENABLED = {"error": {"code": 503, "err_code": 10039, "description": "jetstream not enabled for account"}}
UNAVAILABLE = {"error": {"code": 503, "err_code": 10008, "description": "system temporarily unavailable"}}
FULL = {"error": {"code": 500, "err_code": 10047, "description": "insufficient storage resources available"}}
LIMIT = {"error": {"code": 400, "err_code": 10027, "description": "maximum number of streams reached"}}
NONE = [errors.NoRespondersError(), NOT_ENABLED, LIMIT, NotAllowedError("not allowed to publish", 30.0)]

Answer = dict[str, object] | Exception


class Server:
    """Answers to what JetStream is asked, and what the replies are then read from."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.read: list[str | None] = []

    # As `Connection`:
    def open(self) -> None: ...
    def close(self) -> None: ...

    def request(self, subject: str, payload: bytes) -> bytes:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return json.dumps(answer).encode()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()

    class Source:
        """As `NatsSource`."""

        def __init__(self, endpoint: SystemEndpoint[NatsSourceConfig], worker: int) -> None:
            self._stream = endpoint.settings.stream

        def connect(self) -> None:
            made.read.append(self._stream)

        def close(self) -> None: ...

    monkeypatch.setattr(replies, "Connection", lambda *_: made)
    monkeypatch.setattr(replies, "NatsSource", Source)
    return made


@pytest.mark.parametrize("none", NONE, ids=str)
def test_without_jetstream_replies_are_listened_for_until_there_is_one(server: Server, none: Answer) -> None:
    source = NatsReplies(SystemEndpoint.of(CONFIG, CONFIG.sources[0]), 1)
    server.answers = [none, STREAM]
    source.connect()
    source.connect()
    assert server.read == [None, "REPLIES"]


@pytest.mark.parametrize("passing", [UNAVAILABLE, FULL, NotConnectedError("no answer")], ids=str)
def test_what_passes_is_not_taken_for_a_server_without_jetstream(server: Server, passing: Answer) -> None:
    source = NatsReplies(SystemEndpoint.of(CONFIG, CONFIG.sources[0]), 1)
    server.answers = [passing, STREAM]
    with pytest.raises(NotConnectedError):
        source.connect()
    source.connect()
    assert server.read == ["REPLIES"]


@pytest.mark.parametrize("none", NONE, ids=str)
def test_a_stream_that_was_there_is_waited_for(server: Server, none: Answer) -> None:
    source = NatsReplies(SystemEndpoint.of(CONFIG, CONFIG.sources[0]), 1)
    server.answers = [STREAM, none, none, STREAM]
    source.connect()
    for _ in range(2):
        with pytest.raises(NotConnectedError, match="no stream for the replies") as raised:
            source.connect()
        assert raised.value.back_off_seconds == (30.0 if isinstance(none, NotAllowedError) else None)
    source.connect()
    assert server.read == ["REPLIES", "REPLIES"]


@pytest.mark.parametrize("verb", ["publish", "subscription"])
def test_a_refused_subject_is_told_from_a_lost_connection(verb: str) -> None:
    connection = Connection(SystemEndpoint.of(CONFIG, CONFIG.sources[0]))
    told = errors.Error(f'permissions violation for {verb} to "$js.api.stream.names"')
    asyncio.run(connection._on_error(told))
    assert isinstance(connection.fail("the connection is gone"), NotAllowedError)
