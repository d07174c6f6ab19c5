"""The description of a system whose servers are lists: its settings, and how its sources and sinks are made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.connectors.base import Delivery, NotConnectedError, Outcome, Outgoing
from engine.connectors.system import Connector
from engine.message import Message
from routes.keys.table import key
from routes.keys.values import ANY_TEXT, NAME, whole
from routes.systems import Addresses, NetworkConfig, Scheme, SinkConfig, SourceConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.endpoint import SystemEndpoint
    from routes.keys.settings import Settings

SERVERS: dict[str, dict[str, list[Message]]] = {}
"""Running servers by their URL: the messages in each box."""


@dataclass(frozen=True, kw_only=True)
class ToyConfig(NetworkConfig):
    """Settings of a connection to a toy server."""

    preset: str | None = key("option", NAME, "Name of a set of options.")
    options: Mapping[str, str] = key(
        "option.*", ANY_TEXT, "Any option of the toy.", example="source.NAME.option.colour=red", factory=dict
    )
    size: int = key("option.size", whole(1, 9), "The one option that the bridge itself knows.", default="1")


@dataclass(frozen=True, kw_only=True)
class ToySourceConfig(ToyConfig, SourceConfig):
    """Settings of a toy source."""

    most: int = key("most", whole(1, 10), "How many messages are taken at a time.", default="2")


@dataclass(frozen=True, kw_only=True)
class ToySinkConfig(ToyConfig, SinkConfig):
    """Settings of a toy sink."""

    lid: str | None = key("lid", NAME, "Name of the lid.", default_note="none", example="blue")


class ToySource:
    """A source of the messages in the boxes of a server."""

    redelivery = None

    def __init__(self, endpoint: SystemEndpoint[ToySourceConfig], worker: int) -> None:
        self.address = endpoint.url
        self._boxes = endpoint.settings.destinations
        self._open: dict[object, Message] = {}

    def connect(self) -> None:
        connected(self.address)

    def receive(self, timeout_seconds: float) -> Delivery | None:
        for box in self._boxes:
            if waiting := SERVERS[self.address][box]:
                message = waiting.pop(0)
                self._open[id(message)] = message
                return Delivery(message, id(message))
        return None

    def acknowledge(self, tokens: Sequence[object]) -> None:
        for token in tokens:
            del self._open[token]

    def tend(self) -> None: ...

    def close(self) -> None: ...


class ToySink:
    """A sink that puts messages into boxes."""

    most_under_way = 10
    settle_seconds = 0.0

    def __init__(self, endpoint: SystemEndpoint[ToySinkConfig], worker: int) -> None:
        self.address = endpoint.url
        self._sent: list[Outcome] = []

    def connect(self) -> None:
        connected(self.address)

    def send(self, messages: Sequence[Outgoing]) -> None:
        for each in messages:
            SERVERS[self.address][each.address].append(each.message)
            self._sent.append(Outcome(each.number))

    def outcomes(self, timeout_seconds: float) -> Sequence[Outcome]:
        done, self._sent = self._sent, []
        return done

    def close(self) -> None: ...


class ToyConnector(Connector[ToyConfig, ToySourceConfig, ToySinkConfig]):
    """The toy."""

    name = "toy"
    connection = ToyConfig
    source = ToySourceConfig
    sink = ToySinkConfig
    source_class = "system.ToySource"
    sink_class = "system.ToySink"
    schemes = (Scheme("toy", 7), Scheme("toys", 8, is_tls=True))
    addresses = Addresses("box-[0-9]+", "box-NUMBER, as in toy:box-1")
    reply_example = "box-9"
    port_name = "toy port"

    def check_connection(self, endpoint: SystemEndpoint[ToyConfig], client_id: str) -> str:
        connected(endpoint.url)
        return f"{endpoint.url} plays along"

    def check(self, settings: Settings, section: str, name: str) -> None:
        if section == "source" and settings.get("source.NAME.most", name) == 7:
            settings.fault("source.NAME.most", name, "seven is too many", "take six")

    def spelt(self, address: str, *, wildcards: bool) -> str | None:
        return address if self.may_be_sent_to(address) else None


def start(url: str) -> dict[str, list[Message]]:
    """Starts a server; returns its boxes."""
    SERVERS[url] = defaultdict(list)
    return SERVERS[url]


def connected(url: str) -> None:
    if url not in SERVERS:
        raise NotConnectedError("nobody plays there")


SYSTEM = ToyConnector()
