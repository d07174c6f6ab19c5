"""Source or sink as its connector gets it: its own settings, and those of the bridge that it depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from engine.claims.bodies import KeptBodies
from engine.tracing_section import TracingConfig
from routes.kafka_access import KafkaAccess
from routes.model import Route
from routes.systems import BrokerConfig, SourceConfig

if TYPE_CHECKING:
    from engine.kafka.clients import KafkaClients
    from routes.model import Config

__all__ = ["SystemEndpoint"]

SettingsT = TypeVar("SettingsT", bound=BrokerConfig)
SettingsT_co = TypeVar("SettingsT_co", bound=BrokerConfig, covariant=True)


@dataclass(frozen=True, slots=True)
class SystemEndpoint(Generic[SettingsT_co]):
    """Settings of a source or sink, with those of the bridge that a connector may depend on."""

    settings: SettingsT_co
    """Settings of the source or sink itself."""
    bridge_id: str
    url: str
    """URL that it connects to, embedded broker or not, or that it listens on."""
    root: Path
    """Folder of its messages, if its system keeps them in files."""
    data: Path
    """Folder of the bridge's own files."""
    access: KafkaAccess
    """Kafka that has the journal."""
    journal: str
    """Topic of the journal."""
    own_topics: frozenset[str]
    """Topics of the bridge itself, which no source reads."""
    tracing: TracingConfig
    routes: tuple[Route, ...]
    """Routes that send to it; none for a source."""
    position_keys: Callable[[], tuple[bytes, ...]] = field(repr=False)
    """Returns the keys of position seals that are known now, see `engine.connectors.position_seals`."""
    bodies: Callable[[], KeptBodies] = field(repr=False)
    """Returns the bodies that are kept as files, on which records of Kafka can have a claim."""

    @staticmethod
    def of(config: Config, settings: SettingsT) -> SystemEndpoint[SettingsT]:
        """Takes what a source or sink needs of a configuration; `settings` may be others than those in it."""
        # Imported here: without positions no process needs the seals.
        from engine.connectors.position_seals import position_keys

        bridge_id, secret, checkpoint = config.bridge_id, config.secret, config.router.checkpoint
        return SystemEndpoint(
            settings,
            bridge_id,
            config.url(settings),
            config.root(settings),
            config.embedded.data,
            config.kafka_access,
            config.journal.topic,
            config.own_topics,
            config.section(TracingConfig),
            () if isinstance(settings, SourceConfig) else _routes_to(settings.name, config.routes),
            lambda: position_keys(bridge_id, secret, checkpoint),
            lambda: KeptBodies.of(config),
        )

    @property
    def kafka(self) -> KafkaClients:
        """Maker of clients of that Kafka."""
        # Imported here: `send` and `receive` of brokers need no Kafka client, whose import takes a while.
        from engine.kafka.clients import KafkaClients

        return KafkaClients(self.access)

    @property
    def max_message_bytes(self) -> int:
        """Size of the largest message that the journal takes."""
        return self.access.max_message_bytes


def _routes_to(sink: str, routes: Iterable[Route]) -> tuple[Route, ...]:
    return tuple(route for route in routes if any(target.sink == sink for target in route.targets))
