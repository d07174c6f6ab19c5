"""NATS: settings of sources and sinks, and how they are made and tested."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.connectors.nats.settings import ADDRESSES, NatsConfig, NatsSinkConfig, NatsSourceConfig, WireFormat
from engine.connectors.system import Connector
from routes.systems import Scheme, ServerTraits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.connectors.base import Source
    from engine.connectors.endpoint import SystemEndpoint
    from routes.keys.settings import Settings

__all__ = ["SYSTEM", "NatsConnector"]

_WILDCARD = re.compile(r"(?<![^.])(?:\*(?![^.])|>$)")
_KIND = re.compile(r"^(?:queue|topic)[/:]")
_SUBJECT = re.compile(r"(?:[^\x00-\x20\x7f.*>]+|\*)(?:\.(?:[^\x00-\x20\x7f.*>]+|\*))*(?:\.>)?|>")


class NatsConnector(Connector[NatsConfig, NatsSourceConfig, NatsSinkConfig]):
    """NATS, with and without JetStream."""

    name = "nats"
    connection = NatsConfig
    source = NatsSourceConfig
    sink = NatsSinkConfig
    source_class = "source.NatsSource"
    sink_class = "sink.NatsSink"
    depth_class = "depth.NatsDepth"
    schemes = (Scheme("nats", 4222), Scheme("tls", 4222, is_tls=True))
    server = ServerTraits("nats", "NATS server", ("embedded.nats.port",))
    addresses = ADDRESSES
    reply_example = "bridge.replies"
    token_in_address = True
    # A single word behind the address: the address of another worker, which begins alike, is followed by two.
    reply_wildcard = ".*"
    port_name = "client port"
    passing_reply_address = "_INBOX.{}"

    def make_replies(self, endpoint: SystemEndpoint[NatsSourceConfig], worker: int) -> Source:
        """See `Connector`."""
        from engine.connectors.nats.replies import NatsReplies

        return NatsReplies(endpoint, worker)

    def check_connection(self, endpoint: SystemEndpoint[NatsConfig], client_id: str) -> str:
        """See `Connector`."""
        broker = endpoint.settings
        from engine.connectors.nats.connection import Connection
        from engine.connectors.nats.jetstream import check_stream

        connection = Connection(replace(endpoint, settings=replace(broker, client_id=client_id)))
        try:
            connection.open()
            if isinstance(broker, NatsSourceConfig) and broker.stream:
                check_stream(connection, broker)
                return f"{connection.url} takes the login, and has the stream '{broker.stream}'"
            return f"{connection.url} takes the login"
        finally:
            connection.close()

    def doubts(self, endpoint: SystemEndpoint[NatsConfig]) -> Iterator[tuple[str, str]]:
        """See `Connector`: a consumer with a limit of deliveries."""
        broker = endpoint.settings
        if not isinstance(broker, NatsSourceConfig) or broker.stream is None:
            return
        from engine.connectors.nats.connection import Connection
        from engine.connectors.nats.jetstream import delivery_limit

        connection = Connection(endpoint)
        try:
            connection.open()
            if limit := delivery_limit(connection, broker, endpoint.bridge_id):
                yield limit
        finally:
            connection.close()

    def check(self, settings: Settings, section: str, name: str) -> None:
        """Checks the subjects of a source, and the format of a sink."""
        if section == "sink":
            if settings.get("sink.NAME.format", name) is WireFormat.AUTO:
                hint = "write headers, json, typed, typed-1.0 or raw"
                settings.fault("sink.NAME.format", name, "'auto' is for sources", hint)
            return
        entry = settings.entry("source.NAME.destinations", name)
        for destination in settings.get("source.NAME.destinations", name) or ():
            if entry is not None and not _SUBJECT.fullmatch(destination):
                message = f"'{destination}' is not a subject"
                hint = "words between dots, `*` for any one word, a last `>` for any that follow: orders.*.eu, prices.>"
                settings.faults.append(entry.fault(message, hint, max(entry.value.find(destination), 0)))

    def spelt(self, address: str, *, wildcards: bool) -> str | None:
        """See `Connector`."""
        bare = _KIND.sub("", address)
        plain = _WILDCARD.sub("x", bare) if wildcards else bare
        return bare if re.fullmatch(self.addresses.pattern, plain) else None

    def covers(self, destination: str, address: str) -> bool:
        """See `Connector`; a destination may have wildcards."""
        subject, words = destination.split("."), address.split(".")
        for number, word in enumerate(subject):
            if word == ">":
                return len(words) > number
            if number >= len(words) or word not in ("*", words[number]):
                return False
        return len(subject) == len(words)

    def examples(self, source: NatsSourceConfig) -> Iterator[tuple[str, str]]:
        """See `Connector`."""
        for destination in source.destinations:
            subject = ".".join("any" if word in ("*", ">") else word for word in destination.split("."))
            yield f"{source.name}:{subject}", f"topic:{subject}"


SYSTEM = NatsConnector()
