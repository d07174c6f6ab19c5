"""Logins by access tokens at real brokers: a source and a sink of one queue, without a bridge around them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from engine.connectors.base import LoginEndsError, NotConnectedError, Outgoing
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.system import connector
from engine.message import Message
from routes.config import loads
from tests.token_issuer import CLIENT, SECRET

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.connectors.base import Sink, Source
    from routes.model import Config
    from tests.token_issuer import TokenIssuer

__all__ = [
    "SECONDS",
    "Receiving",
    "Sending",
    "check_refused_client",
    "check_renewals",
    "configured",
    "ends_of",
    "login",
]

NAMES = ("source.s", "sink.o")
"""Beginnings of the keys of the two."""
SECONDS = 5
"""Time for which each token holds."""
_LOGINS = 4


def login(issuer: TokenIssuer, secret: str = SECRET) -> Mapping[str, str]:
    """Returns the keys of the client of an issuer, with their dot; `secret` is what the client takes for its own."""
    return {
        ".oauthbearer.issuer": issuer.url,
        ".oauthbearer.client.id": CLIENT,
        ".oauthbearer.client.secret": secret,
    }


def configured(keys: Mapping[str, str]) -> Config:
    """Returns the configuration of a source `s` and a sink `o` with the same keys, which share the queue `orders`."""
    # A busy machine is no silent broker: what is in doubt after such a loss comes twice.
    all_keys = {".heartbeat": "10s", **keys}
    lines = [f"{each}{key}={text}" for each in NAMES for key, text in all_keys.items()]
    own = ("bridge.id=b", "source.s.destinations=queue:orders", "routes.a.in.include=TRUE")
    return loads("\n".join((*own, "routes.a.out.topic=o:queue/orders", *lines)))


def ends_of(config: Config) -> tuple[Source, Sink]:
    """Returns the source and the sink of a configuration, which are not connected."""
    system = connector(config.sources[0].type)
    source = system.make_source(SystemEndpoint.of(config, config.sources[0]), 1)
    return source, system.make_sink(SystemEndpoint.of(config, config.sinks[0]), 1)


class Sending:
    """Messages that a sink sends, as its loop does: what a lost connection left in doubt is sent again."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.left: dict[int, Outgoing] = {}
        self.sent = 0
        self.logins = 0
        self.doubtful = 0
        self._is_connected = False

    def go_on(self, *, more: bool) -> None:
        """Sends a message more, and takes outcomes."""
        try:
            if not self._is_connected:
                self.sink.connect()
                self._is_connected = True
                self.logins += 1
                self.sink.send(list(self.left.values()))
            if more and len(self.left) < self.sink.most_under_way:
                self.sent += 1
                self.left[self.sent] = Outgoing(self.sent, Message(b"%d" % self.sent), "queue/orders", str(self.sent))
                self.sink.send([self.left[self.sent]])
            for outcome in self.sink.outcomes(0.01):
                assert outcome.refusal is None
                del self.left[outcome.number]
        except NotConnectedError as error:
            self.doubtful += 0 if isinstance(error, LoginEndsError) else 1
            self.sink.close()
            self._is_connected = False


class Receiving:
    """Messages that a source receives, as its loop does."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.found: list[bytes] = []
        self.logins = 0
        self.doubtful = 0
        self._is_connected = False

    def go_on(self) -> None:
        """Takes a message, and acknowledges it."""
        try:
            if not self._is_connected:
                self.source.connect()
                self._is_connected = True
                self.logins += 1
            if (delivery := self.source.receive(0.01)) is not None:
                self.found.append(delivery.message.body)
                self.source.acknowledge([delivery.token])
        except NotConnectedError as error:
            self.doubtful += 0 if isinstance(error, LoginEndsError) else 1
            self.source.close()
            self._is_connected = False


def check_renewals(source: Source, sink: Sink) -> None:
    """Checks that both log in anew before their tokens of `SECONDS` end, and that nothing is lost or comes twice."""
    receiving, sending = Receiving(source), Sending(sink)
    end = time.monotonic() + 12 * SECONDS
    while time.monotonic() < end and min(sending.logins, receiving.logins) < _LOGINS:
        sending.go_on(more=True)
        receiving.go_on()
    end = time.monotonic() + 20
    while time.monotonic() < end and (sending.left or len(receiving.found) < sending.sent):
        sending.go_on(more=False)
        receiving.go_on()
    assert (sending.doubtful, receiving.doubtful) == (0, 0), "each connection ended before its token did"
    assert min(sending.logins, receiving.logins) >= _LOGINS
    assert receiving.found == [b"%d" % number for number in range(1, sending.sent + 1)]
    assert sending.sent > 50


def check_refused_client(keys: Mapping[str, str], issuer: TokenIssuer) -> None:
    """Checks that source and sink name what to correct when the issuer refuses the secret; `keys` are the others."""
    secret = "guessed-wrong"
    ends: tuple[Source | Sink, ...] = ends_of(configured({**keys, **login(issuer, secret)}))
    for end, name in zip(ends, NAMES, strict=True):
        with pytest.raises(NotConnectedError, match="wrong id or secret") as raised:
            end.connect()
        end.close()
        client = f"{name}.oauthbearer.client"
        assert str(raised.value).endswith(f"; correct {client}.id or {client}.secret")
        assert raised.value.back_off_seconds == 30
        assert secret not in str(raised.value)
        assert "\n" not in str(raised.value)
