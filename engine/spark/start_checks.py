"""Checks of a router's start that need only its checkpoint and Kafka.

They run before Spark, whose start takes seconds. The router repeats them when it holds the checkpoint's lock
(`engine.spark.recovery`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.kafka.offsets import KafkaOffsets
from engine.spark.generation import DamagedError, Generations
from engine.spark.last_progress import check_end, check_journal, last_place
from engine.spark.position_store import PositionStore

if TYPE_CHECKING:
    from routes.model import Config

__all__ = ["check_place", "is_kafka_first"]


def check_place(config: Config, *, leads: bool) -> None:
    """Checks that the router can continue from the progress of the last run.

    If the bridge `leads`, this first ends the writing of earlier routers to the notebook, so that none of their notes
    is still under way.

    Raises:
        HardFailureError: the checkpoint is damaged or missing, or belongs to another journal.
        UnreachableError: Kafka does not answer.
    """
    kafka, notebook, journal = KafkaOffsets(config), PositionStore(config), config.journal.topic
    if leads:
        notebook.open()
    identity = kafka.identity(journal)
    last = last_place(Generations(config.router.checkpoint), notebook.read(), identity, is_trial=True)
    if last is not None:
        check_journal(config, last.start, identity)
        check_end(config, last.positions, kafka.ends([journal]).get(journal, {}))


def is_kafka_first(config: Config) -> bool:
    """True if Spark is to start only after the embedded Kafka, because a check is likely to refuse the start.

    Otherwise both start at the same time.
    """
    if "spark.master" in config.spark:
        # The start is refused if it has fewer task slots than the journal has partitions.
        return True
    try:
        newest = Generations(config.router.checkpoint).newest()
        if newest is None:
            # If the journal of an earlier start exists, the checkpoint has been lost.
            return (config.embedded.data / "kafka" / "data" / f"{config.journal.topic}-0").exists()
        newest.place()
    except DamagedError:
        return True
    return newest.start.journal != config.journal.topic
