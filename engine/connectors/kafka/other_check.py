"""Check of another Kafka cluster for `jms-bridge doctor`: its answer, the login, and the topics that are used."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from engine.connectors.base import MissingError
from engine.connectors.kafka.settings import KafkaSourceConfig
from engine.connectors.kafka.source import is_wanted
from engine.kafka.clients import KafkaClients
from engine.kafka.cluster import Cluster, problems_of_access, refused
from engine.printable import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.kafka.settings import KafkaClusterConfig
    from routes.kafka_access import KafkaAccess

__all__ = ["finding"]

_ANSWER_SECONDS = 10.0


def finding(endpoint: SystemEndpoint[KafkaClusterConfig], client_id: str) -> str:
    """Returns what the other cluster of a source or sink can be used for; see `Connector.check_connection`.

    Raises:
        MissingError: there is no topic that the source would read.
        KafkaUnavailableError: the cluster does not answer.
        HardFailureError: it refuses the login, or the use of a topic, or lacks one to which a route sends.
    """
    broker = endpoint.settings
    access = replace(broker.access(endpoint.access), client_id=client_id)
    cluster = Cluster(KafkaClients(access), _ANSWER_SECONDS)
    if not isinstance(broker, KafkaSourceConfig):
        written = _written(endpoint)
        _check(cluster, access, written, f"sink '{broker.name}'", "WRITE")
        return f"{endpoint.url} takes the login" + (f"; the sink writes {listed(written)}" if written else "")
    source = cast("SystemEndpoint[KafkaSourceConfig]", endpoint)
    topics = [topic for topic in cluster.names() if is_wanted(source, topic)]
    if not topics:
        remedy = f"create one, let the user of the login see it, or correct {access.keys}destinations"
        raise MissingError(f"there is no topic yet that it would read; {remedy}")
    _check(cluster, access, topics, f"source '{broker.name}'", "READ")
    return f"{endpoint.url} takes the login; the source reads {listed(topics)}"


def _check(cluster: Cluster, access: KafkaAccess, topics: Sequence[str], user: str, right: str) -> None:
    described = cluster.describe(topics)
    if problems := [each for topic in topics for each in problems_of_access(topic, user, described[topic], (right,))]:
        raise refused(access.servers, problems)


def _written(endpoint: SystemEndpoint[KafkaClusterConfig]) -> list[str]:
    """Returns the topics to which routes send, without those that messages choose."""
    name = endpoint.settings.name
    targets = [target for route in endpoint.routes for target in route.targets if target.sink == name]
    return sorted({str(target.address) for target in targets if not target.address.references})
