"""Checks of a router's start that need only its checkpoint and Kafka. They come before Spark, which takes seconds.

The router looks at the same again when it holds the checkpoint (`engine.spark.recovery`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import UnreachableError
from engine.kafka import librdkafka
from engine.spark.generation import DamagedError, Generations
from engine.spark.notebook import Notebook
from engine.spark.place import check_end, check_journal, last_place
from engine.spark.positions import KafkaOffsets, KafkaUnavailableError

if TYPE_CHECKING:
    from routes.model import Config

__all__ = ["check_place", "is_kafka_first"]


def check_place(config: Config, *, leads: bool) -> None:
    """Checks that the router can go on from where the last run was.

    A bridge that `leads` ends the writing of routers before it first, so that no note of theirs is still under way.

    Raises:
        HardFailureError: the checkpoint is damaged or gone, or the journal is not the one that it belongs to.
        UnreachableError: Kafka does not answer.
    """
    kafka, notebook, journal = KafkaOffsets(librdkafka(config, "admin")), Notebook(config), config.journal.topic
    try:
        if leads:
            notebook.open()
        identity = kafka.identity(journal)
        last = last_place(Generations(config.router.checkpoint), notebook.read(), identity, is_trial=True)
        if last is not None:
            check_journal(config, last.start, identity)
            check_end(config, last.positions, kafka.ends([journal]).get(journal, {}))
    except KafkaUnavailableError as error:
        raise UnreachableError(str(error)) from error


def is_kafka_first(config: Config) -> bool:
    """Whether an embedded Kafka is waited for before Spark starts, since the start is likely to be refused.

    Otherwise both start at the same time.
    """
    if "spark.master" in config.spark:
        # Its task slots are compared with the journal's partitions.
        return True
    try:
        newest = Generations(config.router.checkpoint).newest()
        if newest is None:
            # A journal of an earlier start, and no checkpoint any more.
            return (config.embedded.data / "kafka" / "data" / f"{config.journal.topic}-0").exists()
        newest.place()
    except DamagedError:
        return True
    return newest.start.journal != config.journal.topic
