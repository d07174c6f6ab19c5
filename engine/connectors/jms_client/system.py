"""JMS by a provider's client jars: settings of sources and sinks, and how they are made and tested."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.connectors.jms import JmsConnector, jms_addresses
from engine.connectors.jms_client.settings import (
    JNDI_NAME,
    JmsClientConfig,
    JmsClientSinkConfig,
    JmsClientSourceConfig,
)

if TYPE_CHECKING:
    from engine.connectors.endpoint import SystemEndpoint
    from routes.keys.settings import Settings

__all__ = ["SYSTEM", "JmsClientConnector"]


class JmsClientConnector(JmsConnector[JmsClientConfig, JmsClientSourceConfig, JmsClientSinkConfig]):
    """Every broker that has a JMS client."""

    name = "jms"
    connection = JmsClientConfig
    source = JmsClientSourceConfig
    sink = JmsClientSinkConfig
    source_class = "source.JmsClientSource"
    sink_class = "sink.JmsClientSink"
    depth_unsaid = "JMS has no question for it, but to look at every message"
    server = None  # type: ignore[assignment] # the bridge starts none of its brokers
    addresses = jms_addresses("jms")
    any_body = True
    place = ("broker", "connection-factory")
    not_sent = JmsConnector.not_sent | {"JMSMessageID", "JMSTimestamp", "JMSXUserID"}
    remedy = "start the broker, or correct {key}.connection-factory and its properties"

    def check_connection(self, endpoint: SystemEndpoint[JmsClientConfig], client_id: str) -> str:
        """See `Connector`."""
        broker = endpoint.settings
        from engine.connectors.jms_client.process import ClientProcess, connection_settings

        process = ClientProcess(endpoint)
        try:
            process.start({**connection_settings(broker), "role": "check"})
            return f"{process.provider or endpoint.url} takes the login"
        finally:
            process.close()

    def check(self, settings: Settings, section: str, name: str) -> None:
        """Checks a source or sink as at every JMS broker, its client jars and its connection factory."""
        from engine.connectors.jms_client.class_path import check

        super().check(settings, section, name)
        prefix = f"{section}.NAME."
        entry = settings.first_entry(section, name)
        has_factory = settings.is_set(f"{prefix}connection-factory", name)
        has_jndi = settings.is_set(f"{prefix}jndi.{JNDI_NAME}", name)
        if has_factory == has_jndi:
            what = "both a class and a JNDI name" if has_factory else "no connection factory"
            hint = f"set {section}.{name}.connection-factory=CLASS, or {section}.{name}.jndi.{JNDI_NAME}=NAME"
            settings.faults.append(entry.key_fault(f"{section} '{name}' has {what}", hint))
        if not any(settings.is_set(f"{prefix}{part}", name) for part in ("class-path", "packages")):
            hint = f"set {section}.{name}.class-path=/path/*.jar, or {section}.{name}.packages=group:artifact:version"
            settings.faults.append(entry.key_fault(f"{section} '{name}' has no client jars", hint))
        if settings.get(f"{prefix}jndi-destinations", name) and not has_jndi:
            settings.fault(f"{prefix}jndi-destinations", name, "no JNDI for the destinations", "set jndi.*")
        check(settings, section, name)


SYSTEM = JmsClientConnector()
