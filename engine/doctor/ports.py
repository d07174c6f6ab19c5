"""Checks of the addresses that a bridge listens on: free, or taken by that very bridge."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from engine.doctor.findings import Finding, failed, ok
from engine.embedded.ports import LOOPBACK, obstacle
from routes.systems import schemes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from routes.model import BrokerConfig, Config

__all__ = ["check_embedded_ports", "check_port", "listening"]


def check_embedded_ports(config: Config, *, running: bool) -> Iterator[Finding]:
    """Checks the ports of embedded servers; `running`: the bridge has already started them."""
    for setting, port in _embedded(config):
        yield check_port(setting, LOOPBACK, port, running=running)


def check_port(setting: str, host: str, port: int, *, running: bool) -> Finding:
    """Checks one port; `setting` is the key that sets it."""
    why = obstacle(host, port)
    if why is None:
        return ok(setting, f"port {port} is free")
    if running:
        return ok(setting, f"{why}: the bridge runs")
    return failed(setting, why, f"stop that program, or set {setting} to another address or port")


def listening(broker: BrokerConfig) -> tuple[str, int]:
    """Returns host and port of a source or sink that listens."""
    parts = urlsplit(broker.listen or "")
    return parts.hostname or LOOPBACK, parts.port or schemes_of([broker.type])[parts.scheme].port


def _embedded(config: Config) -> Iterator[tuple[str, int]]:
    embedded = config.embedded
    if config.embedded_kafka:
        yield "embedded.kafka.port", embedded.kafka_port
    if config.embedded_artemis:
        yield "embedded.artemis.port", embedded.artemis_port
        yield "embedded.stomp.port", embedded.stomp_port
        yield "embedded.amqp.port", embedded.amqp_port
    if config.embedded_nats:
        yield "embedded.nats.port", embedded.nats_port
