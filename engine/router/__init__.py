"""Router: a configuration's routes as a topology over the journal, and as Columns over a frame of messages.

    journal ─► guards ─► split by route ─► key ─► checks ─► headers ─► destination topics
                 │             │                    └─► policy ─► dead letters, skipped, stop
                 └─ counted    └─ unmatched: counted or dead-lettered

`plan` builds the topology, `addresses`, `headers` and `failures` hold its expressions, `route` applies it to a frame of
messages without any broker. `engine.spark` runs it, with checkpoints, recovery and live figures.
"""

from engine.router.plan import topology
from engine.router.route import Routed, RoutingOutcome, route

__all__ = ["Routed", "RoutingOutcome", "route", "topology"]
