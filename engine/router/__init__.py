"""Router: a configuration's routes as one Spark query over the journal, and the run of that query.

    journal ─► guards ─► split by route ─► key ─► checks ─► headers ─► destination topics
                 │             │                    └─► policy ─► dead letters, skipped, stop
                 └─ counted    └─ unmatched: counted or dead-lettered

How a message is routed is in `plan`, which needs no broker:

    plan.topology        the routes as a topology, from the constants in `plan.route_settings`
    plan.stages          the stages between route and topic, each with its checks: keys, bodies, destinations
    plan.headers         expressions of the headers that published messages have
    plan.failures        what a check is, and what becomes of messages that fail one
    plan.refusals        messages that Kafka does not take
    plan.language        JMS fields and predicates in topologies
    plan.route           the topology applied to a frame of messages

The other modules run it, one query at a time, with checkpoints, recovery and live figures:

    runtime           the main loop, which uses all modules below
    warm_up           warm-up of Spark, in a standby and before a query
    recovery          repair of what the last run left, and start of the next generation
    published         journal positions that are in the outputs already
    generation        files that a run leaves in the checkpoint for the next one
    position_store    notes about the generation in Kafka's state topic
    past_routes       routes of generations, and the generation that routed a record
    last_progress     choice between the two for the progress of the last run; checks of a start that need no Spark
    secret            secret of the seals of published records
    run               one generation while its query runs
    kafka_io          Spark's Kafka sources and sinks
    publish_deadline  the time until which the JVM may publish
    query_failures    failures of the query as errors for users
    row_counters      counts of rows in the JVM
    meter             metrics and log lines made from these counts
    vitals            figures of a query: its start, its batches, its JVM
    lag               records that are not routed yet
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.router.plan.language import MessageCondition, MessageField
    from engine.router.plan.route import Routed, RoutingOutcome, route
    from engine.router.plan.route_settings import ByBranch
    from engine.router.plan.topology import topology

__all__ = [
    "ByBranch",
    "MessageCondition",
    "MessageField",
    "Routed",
    "RoutingOutcome",
    "route",
    "topology",
]

_MODULES = {
    "ByBranch": "route_settings",
    "MessageCondition": "language",
    "MessageField": "language",
    "Routed": "route",
    "RoutingOutcome": "route",
    "route": "route",
    "topology": "topology",
}
"""Module in `plan` of each public name."""


def __getattr__(name: str) -> Any:
    """A public name, whose module is imported at the first use: it needs PySpark.

    The checks before a start do without PySpark, so that Spark's JVM starts before that is imported.
    """
    if name not in _MODULES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.plan.{_MODULES[name]}"), name)
