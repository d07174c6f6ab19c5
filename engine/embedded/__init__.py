"""Kafka, Artemis and NATS as child processes of the bridge, for a first try and for tests; not for production.

All listen on 127.0.0.1 only, keep their data in one folder and continue from there when started again.
"""

from engine.embedded.artemis import EmbeddedArtemis
from engine.embedded.kafka import EmbeddedKafka
from engine.embedded.nats import EmbeddedNats, find_nats_server
from engine.embedded.ports import free_ports

__all__ = [
    "EmbeddedArtemis",
    "EmbeddedKafka",
    "EmbeddedNats",
    "find_nats_server",
    "free_ports",
]
