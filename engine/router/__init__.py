"""Router: a configuration's routes as a topology over the journal, and as Columns over a frame of messages.

    journal ─► guards ─► split by route ─► key ─► checks ─► headers ─► destination topics
                 │             │                    └─► policy ─► dead letters, skipped, stop
                 └─ counted    └─ unmatched: counted or dead-lettered

The router is a client of `engine.streams`. `plan` builds the topology from the constants in `route_settings` and the
expressions in `headers` and `failures`; `language` reads JMS fields and predicates; `route` applies the topology to a
frame of messages without any broker. `engine.spark` runs it, with checkpoints, recovery and live figures.
"""

from engine.router.language import MessageCondition, MessageField, RoutingLanguage
from engine.router.plan import topology
from engine.router.route import Routed, RoutingOutcome, route
from engine.router.route_settings import ByBranch

__all__ = [
    "ByBranch",
    "MessageCondition",
    "MessageField",
    "Routed",
    "RoutingLanguage",
    "RoutingOutcome",
    "route",
    "topology",
]
