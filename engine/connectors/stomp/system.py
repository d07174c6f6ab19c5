"""STOMP: settings of sources and sinks, and how they are made and tested."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.connectors.jms import JmsConfig, JmsConnector, jms_addresses
from engine.connectors.stomp.settings import StompSinkConfig, StompSourceConfig
from routes.systems import Scheme

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.connectors.base import Sink
    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.stomp.session import StompSession

__all__ = ["SYSTEM", "StompConnector"]

_ANSWER_BYTES = 64 * 1024
"""Largest answer of a broker that is read whole, such as the body of an ERROR."""


class StompConnector(JmsConnector[JmsConfig, StompSourceConfig, StompSinkConfig]):
    """STOMP."""

    name = "stomp"
    connection = JmsConfig
    source = StompSourceConfig
    sink = StompSinkConfig
    source_class = "source.StompSource"
    depth_class = "depth.StompDepth"
    schemes = (Scheme("stomp", 61613), Scheme("stomp+ssl", 61612, is_tls=True))
    addresses = jms_addresses("stomp")
    port_name = "STOMP port"
    not_sent = JmsConnector.not_sent | {"JMSMessageID", "JMSTimestamp", "JMSXUserID"}

    def make_sink(self, endpoint: SystemEndpoint[StompSinkConfig], worker: int) -> Sink:
        """See `Connector`."""
        sink = endpoint.settings
        if sink.position_queue is not None:
            from engine.connectors.position_sink import PositionSink, position_owner
            from engine.connectors.stomp.transacted_sink import TransactedStompSink

            sending = TransactedStompSink(endpoint, worker, sink.position_queue)
            return PositionSink(sending, position_owner(endpoint), keys=endpoint.position_keys)
        from engine.connectors.stomp.sink import StompSink

        return StompSink(endpoint, worker)

    def check_connection(self, endpoint: SystemEndpoint[JmsConfig], client_id: str) -> str:
        """See `Connector`."""
        from engine.connectors.features import require

        with self._connected(endpoint, client_id) as session:
            require(endpoint, session)
            lacking = f"; its frames have no {', '.join(session.traits.omits)}" if session.traits.omits else ""
            return f"{session.endpoint} takes the login{lacking}"

    def doubts(self, endpoint: SystemEndpoint[JmsConfig]) -> Iterator[tuple[str, str]]:
        """See `Connector`: a sink whose messages may come twice after a crash."""
        from engine.connectors.features import duplicates

        return duplicates(endpoint.settings, lambda client_id: self._connected(endpoint, client_id))

    @contextmanager
    def _connected(self, endpoint: SystemEndpoint[JmsConfig], client_id: str) -> Iterator[StompSession]:
        """Connects for the time of a block."""
        from engine.connectors.stomp.session import StompSession

        broker = endpoint.settings
        session = StompSession(broker, f"'{broker.name}'", endpoint.url, client_id, _ANSWER_BYTES)
        try:
            session.open()
            yield session
        finally:
            session.close()


SYSTEM = StompConnector()
