"""AMQP 1.0: settings of sources and sinks, at a broker or listening themselves, and how they are made and tested."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from engine.connectors.amqp.sasl import WITH_TOKEN, MechanismChoice
from engine.connectors.amqp.settings import SCHEMES, AmqpConfig, AmqpSinkConfig, AmqpSourceConfig
from engine.connectors.amqp.transformer_settings import SECTION, check_transformers
from engine.connectors.depth import UnsaidDepth
from engine.connectors.jms import JmsConnector, jms_addresses
from routes.errors import Level
from routes.keys.addresses import is_loopback
from routes.keys.token_login import TOKEN_LOGIN, check_token_login

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.connectors.amqp.session import AmqpSession
    from engine.connectors.amqp.traits import AmqpTraits
    from engine.connectors.base import Sink, Source
    from engine.connectors.depth import Depth
    from engine.connectors.endpoint import SystemEndpoint
    from routes.keys.settings import Settings

__all__ = ["SYSTEM", "AmqpConnector"]

_NOT_OF_LISTENERS = {
    "url": ("it either connects to a broker or listens", "keep one of the two"),
    "backup-urls": ("it is not a client of a broker", "remove the line"),
    "selector": ("clients send what they like, no broker applies a selector", "put it into routes.NAME.in.include"),
    "subscription": ("clients send to it, it subscribes nowhere", "remove the line"),
    "identity": ("its clients send again what it has not taken, no broker does", "remove the line"),
    "virtual-host": ("it is not a client of a broker", "remove the line"),
    "broker": ("it is not a client of a broker", "remove the line"),
    "mechanism": ("it offers its own", "remove the line"),
    "oauthbearer.client.id": ("it takes passwords and certificates alone", "remove the lines"),
    "sole-connection": ("it takes connections and makes none", "remove the line"),
    "reply-to": ("there is no broker beside it that could take replies", "remove the line"),
    "accept-duplicates": ("its clients say what they have taken", "remove the line"),
    "position-queue": ("there is no broker beside it that could keep positions", "remove the line"),
}
"""Keys that a listener cannot have, with reason and hint."""
_ONLY_OF_LISTENERS = ("max-clients", "transaction-timeout")


class AmqpConnector(JmsConnector[AmqpConfig, AmqpSourceConfig, AmqpSinkConfig]):
    """AMQP 1.0, as a client of a broker or as the server of clients."""

    name = "amqp"
    connection = AmqpConfig
    source = AmqpSourceConfig
    sink = AmqpSinkConfig
    schemes = SCHEMES
    addresses = jms_addresses("amqp")
    any_body = True
    sections = (SECTION,)
    port_name = "AMQP port"

    def make_source(self, endpoint: SystemEndpoint[AmqpSourceConfig], worker: int) -> Source:
        """See `Connector`."""
        source = endpoint.settings
        from engine.connectors.amqp.source import AmqpSource
        from engine.connectors.amqp_listener.source import AmqpListenerSource

        return (AmqpListenerSource if source.listen else AmqpSource)(endpoint, worker)

    def make_depth(self, endpoint: SystemEndpoint[AmqpSourceConfig]) -> Depth:
        """See `Connector`."""
        from engine.connectors.amqp.depth import AmqpDepth

        return (
            UnsaidDepth("clients connect to it, and keep their messages")
            if endpoint.settings.listen
            else AmqpDepth(endpoint)
        )

    def make_sink(self, endpoint: SystemEndpoint[AmqpSinkConfig], worker: int) -> Sink:
        """See `Connector`."""
        sink = endpoint.settings
        from engine.connectors.amqp.sink import AmqpSink
        from engine.connectors.amqp.transacted_sink import TransactedAmqpSink
        from engine.connectors.amqp_listener.sink import AmqpListenerSink

        if sink.position_queue is not None:
            from engine.connectors.position_sink import PositionSink, position_owner

            sending = TransactedAmqpSink(endpoint, worker, sink.position_queue)
            return PositionSink(sending, position_owner(endpoint), keys=endpoint.position_keys)
        return (AmqpListenerSink if sink.listen else AmqpSink)(endpoint, worker)

    def check_connection(self, endpoint: SystemEndpoint[AmqpConfig], client_id: str) -> str:
        """See `Connector`."""
        from engine.connectors.features import require

        with self._connected(endpoint, client_id) as session:
            require(endpoint, session)
            return f"{session.endpoint} takes the login{_reminder(session.traits, endpoint.settings)}"

    def doubts(self, endpoint: SystemEndpoint[AmqpConfig]) -> Iterator[tuple[str, str]]:
        """See `Connector`: a sink whose messages may come twice after a crash."""
        from engine.connectors.features import duplicates

        return duplicates(endpoint.settings, lambda client_id: self._connected(endpoint, client_id))

    @contextmanager
    def _connected(self, endpoint: SystemEndpoint[AmqpConfig], client_id: str) -> Iterator[AmqpSession]:
        """Connects for the time of a block."""
        from engine.connectors.amqp.session import AmqpSession

        session = AmqpSession(endpoint.settings, f"'{endpoint.settings.name}'", endpoint.url, client_id)
        try:
            session.open()
            yield session
        finally:
            session.close()

    def check_listener(self, broker: AmqpConfig) -> None:
        """See `Connector`."""
        if (broker.listen or "").startswith("amqps:"):
            from engine.connectors.amqp_listener.access import server_tls

            server_tls(broker)

    def check(self, settings: Settings, section: str, name: str) -> None:
        """Checks a source or sink as at every JMS broker, and its listener."""
        super().check(settings, section, name)
        _check_listener(settings, section, name)
        _check_tokens(settings, section, name)
        workers = settings.get("source.NAME.workers", name)
        if section == "source" and settings.get("source.NAME.sole-connection", name) and workers not in (None, 1):
            why, hint = "each worker has a connection of its own", "remove the line, or use one worker"
            settings.fault("source.NAME.sole-connection", name, why, hint)

    def check_sections(self, settings: Settings) -> None:
        """Checks transformers."""
        check_transformers(settings)


def _reminder(traits: AmqpTraits, broker: AmqpConfig) -> str:
    """Returns a warning about a broker that the broker itself does not give; mostly empty."""
    if traits.raw_for_others and isinstance(broker, AmqpSinkConfig):
        return "; its OpenWire clients get encoded AMQP messages unless its connector has transport.transformer=jms"
    if traits.limits_deliveries and isinstance(broker, AmqpSourceConfig):
        return "; its quorum queues drop what 21 connections left unacknowledged, unless x-delivery-limit is -1"
    return ""


def _check_listener(settings: Settings, section: str, name: str) -> None:
    """Checks that a listener is one process, and with TLS has a certificate."""
    prefix = f"{section}.NAME."
    where = settings.get(f"{prefix}listen", name)
    if where is None:
        for part in _ONLY_OF_LISTENERS:
            if settings.is_set(f"{prefix}{part}", name):
                hint = f"remove the line, or set {section}.{name}.listen"
                settings.fault(f"{prefix}{part}", name, f"{part} is for a listener: no client connects", hint)
        return
    for part, (why, hint) in _NOT_OF_LISTENERS.items():
        if settings.is_set(f"{prefix}{part}", name):
            settings.fault(f"{prefix}{part}", name, f"a listener has no {part}: {why}", hint)
    _check_reach(settings, section, name, where)
    if settings.get(f"{prefix}workers", name) not in (None, 1):
        hint = "one process serves many clients"
        settings.fault(f"{prefix}workers", name, "a listener has one worker: its port is one process's", hint)
    if where.startswith("amqps:") and not settings.is_set(f"{prefix}tls.certificate", name):
        hint = f"set {section}.{name}.tls.certificate and {section}.{name}.tls.key"
        settings.fault(f"{prefix}listen", name, "TLS without a certificate to show to clients", hint)


def _check_tokens(settings: Settings, section: str, name: str) -> None:
    """Checks that a login by access tokens is whole and the only one, and that its mechanism can have them."""
    prefix, client = f"{section}.NAME.", f"{section}.{name}.{TOKEN_LOGIN}client.id"
    has_tokens = check_token_login(settings, prefix, name)
    mechanism = settings.get(f"{prefix}mechanism", name) or MechanismChoice.AUTO
    if has_tokens and settings.is_set(f"{prefix}password", name):
        hint = f"keep {section}.{name}.password or {client}"
        settings.fault(f"{prefix}password", name, "two ways to log in", hint)
    if has_tokens and mechanism not in (MechanismChoice.AUTO, *WITH_TOKEN):
        hint = f"write auto, {', '.join(WITH_TOKEN[:-1])} or {WITH_TOKEN[-1]}"
        settings.fault(f"{prefix}mechanism", name, f"{mechanism} does not take access tokens", hint)
    if not has_tokens and mechanism in WITH_TOKEN[:-1]:
        settings.fault(f"{prefix}mechanism", name, f"{mechanism} needs access tokens", f"set {client}")
    url, entry = settings.get(f"{prefix}url", name) or "", settings.entry(f"{prefix}url", name)
    if has_tokens and entry and url.startswith("amqp:") and not is_loopback(urlsplit(url).hostname or ""):
        message = "the access token goes over the network in the clear"
        settings.faults.append(entry.fault(message, "use amqps", level=Level.WARNING))


def _check_reach(settings: Settings, section: str, name: str, where: str) -> None:
    """Warns of a listener that other machines can reach without login or TLS.

    A user name without a password is a fault: everybody who knows the name could connect.
    """
    prefix = f"{section}.NAME."
    has_login = settings.is_set(f"{prefix}username", name)
    if has_login and not settings.is_set(f"{prefix}password", name):
        hint = f"set {section}.{name}.password"
        settings.fault(
            f"{prefix}username",
            name,
            "a listener with a user name and no password lets in everybody who knows the name",
            hint,
        )
    entry = settings.entry(f"{prefix}listen", name)
    if entry is None or is_loopback(urlsplit(where).hostname or ""):
        return
    if where.startswith("amqp:"):
        hint = f"write {section}.{name}.listen=amqps://… with tls.certificate and tls.key"
        message = "other machines can reach this listener, and there is no TLS"
        settings.faults.append(entry.fault(message, hint, level=Level.WARNING))
    if not has_login and not settings.is_set(f"{prefix}tls.ca", name):
        message = "other machines can reach this listener, and nobody has to log in"
        hint = f"set {section}.{name}.username and {section}.{name}.password, or tls.ca for certificates"
        settings.faults.append(entry.fault(message, hint, level=Level.WARNING))


SYSTEM = AmqpConnector()
