"""Checks that the system behind each source and sink answers and takes the login.

Subscribes to, takes and sends nothing.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from engine.connectors.base import MissingError, NotConnectedError
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.system import connector
from engine.doctor.checks import Check, Finding, failed, ok, warning
from engine.doctor.kafka import REMEDY as KAFKA_REMEDY
from engine.doctor.kafka import check_kafka_source
from engine.doctor.machine import check_port, listening
from engine.embedded.ports import holder_id, is_held_by
from engine.errors import HardFailureError, UnreachableError
from engine.telemetry.http_section import HttpConfig
from engine.telemetry.status import component_name, sink_component
from routes.model import SourceConfig
from routes.systems import schemes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from routes.model import BrokerConfig, Config

__all__ = ["broker_check", "not_connected"]


def broker_check(config: Config, broker: BrokerConfig, timeout_seconds: float, *, running: bool) -> Check:
    """Returns the check of one source or sink; `running`: the bridge runs, and embedded servers with it."""
    section, named = ("source", component_name) if isinstance(broker, SourceConfig) else ("sink", sink_component)
    name, key = named(broker.name), f"{section}.{broker.name}"

    def look() -> Iterator[Finding]:
        if broker.listen:
            yield from _listener(config.section(HttpConfig), broker, name, key, running=running)
        elif _is_to_come(broker, embedded_kafka=config.embedded_kafka) and not running:
            what = broker.type.server.title if broker.type.server else "Kafka"
            yield ok(name, f"the embedded {what} will be started by the bridge")
        elif isinstance(broker, SourceConfig) and broker.in_own_cluster:
            yield from check_kafka_source(SystemEndpoint.of(config, broker), name, timeout_seconds)
        else:
            yield from _connection_findings(SystemEndpoint.of(config, broker), name, key)

    return Check(name, look, _remedy(broker, key), UnreachableError)


def not_connected(name: str, key: str, where: str, broker: BrokerConfig, error: NotConnectedError) -> Finding:
    """Returns the finding for a connection that could not be made: refused, or not answered."""
    # Only a server that has answered makes the client back off; then the server refused.
    if error.back_off_seconds is None:
        return failed(name, f"{where}: {error}", _remedy(broker, key), UnreachableError)
    return failed(name, f"{where}: {error}", f"correct the login of {key}, or the rights of its user", HardFailureError)


def _connection_findings(endpoint: SystemEndpoint[BrokerConfig], name: str, key: str) -> Iterator[Finding]:
    broker = endpoint.settings
    system = connector(broker.type)
    try:
        # A client id of its own for each connection: brokers let no two clients of one id in.
        yield ok(name, system.check_connection(endpoint, f"jms-bridge-doctor-{uuid.uuid4().hex[:8]}"))
        for found, remedy in system.doubts(endpoint):
            yield warning(name, found, remedy)
    except MissingError as error:
        found, _, remedy = str(error).rpartition("; ")
        yield warning(name, found, f"{remedy}; the {key.partition('.')[0]} waits for it")
    except NotConnectedError as error:
        yield not_connected(name, key, endpoint.url, broker, error)


def _listener(http: HttpConfig, broker: BrokerConfig, name: str, key: str, *, running: bool) -> Iterator[Finding]:
    connector(broker.type).check_listener(broker)
    host, port = listening(broker)
    supervisor = holder_id(http.port) if running else None
    is_own = running and (supervisor is None or is_held_by(port, supervisor))
    found = check_port(f"{key}.listen", host, port, running=is_own)
    yield Finding(name, found.state, f"{broker.listen}: {found.found}", found.remedy, found.exit_code)


def _is_to_come(broker: BrokerConfig, *, embedded_kafka: bool) -> bool:
    """True if the system behind the source or sink is a server that the bridge starts."""
    if broker.in_own_cluster:
        return embedded_kafka
    return broker.type.server is not None and broker.url is None


def _remedy(broker: BrokerConfig, key: str) -> str:
    if broker.listen:
        return f"correct {key}.listen and {key}.tls.*"
    if broker.in_own_cluster:
        return KAFKA_REMEDY
    if remedy := connector(broker.type).remedy:
        return remedy.format(key=key)
    scheme = schemes_of([broker.type]).get((broker.url or "").partition(":")[0])
    return f"start the broker, or correct {key}.url" + (f" and {key}.tls.*" if scheme and scheme.is_tls else "")
