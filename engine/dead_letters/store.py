"""The dead letters of one bridge: the topics that they are in, and the means to read and settle them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from engine.claims.bodies import KeptBodies
from engine.kafka.clients import KafkaClients
from engine.schemas.documents import documents_of
from engine.seals import keys_of_files
from routes.model import JournalConfig
from routes.predicate.bodies import BOUNDS, Bounds

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.dead_letters.letter import DeadLetter
    from engine.seals import SealKeys
    from routes.model import Config, Publication
    from routes.predicate.bodies import DocumentReader

__all__ = ["DeadLetterStore"]


@dataclass(frozen=True, slots=True)
class DeadLetterStore:
    """Topics of the dead letters of a bridge, with the journal that they came from."""

    kafka: KafkaClients
    """Maker of clients of the Kafka that has the topics and the journal."""
    bridge_id: str
    journal: JournalConfig
    topic: str
    """Topic of the dead letters."""
    audit: str
    """Topic of the notes about settled dead letters."""
    quarantine: str
    """Topic of those that were replayed too often."""
    max_replays: int
    """Number of replays after which a dead letter goes into quarantine instead, retries included."""
    checkpoint: Path | str
    """Place of the router's secret."""
    secret: str | None = field(default=None, repr=False)
    """Secret of the configuration; None: only the router's own one counts."""
    publications: tuple[Publication, ...] = ()
    """The publications of the routes in force."""
    bodies: Callable[[], KeptBodies] = lambda: KeptBodies(None)
    """Returns the bodies that are kept as files, on which letters of sinks can have a claim."""
    bounds: Bounds = BOUNDS
    """Sizes beyond which bodies are not read."""
    documents: DocumentReader | None = field(default=None, compare=False, repr=False)
    """Reader of bodies with a schema; None if there is no registry."""
    retries: tuple[float, ...] = ()
    """Pauses in seconds before the bridge replays a letter by itself, for the first failure, the second, and so on."""

    @classmethod
    def of(cls, config: Config) -> DeadLetterStore:
        """Takes the parts of a configuration."""
        return cls(
            KafkaClients(config.kafka_access),
            config.bridge_id,
            config.journal,
            *config.letter_topics,
            config.routing.max_replays + len(config.routing.retry),
            config.router.checkpoint,
            config.secret,
            config.publications,
            lambda: KeptBodies.of(config),
            config.routing.bounds,
            documents_of(config),
            config.routing.retry,
        )

    def source(self, *, quarantine: bool) -> str:
        """Returns the topic of the dead letters, or their quarantine."""
        return self.quarantine if quarantine else self.topic

    def publication(self, letter: DeadLetter) -> Publication | None:
        """Returns the publication that failed, as the routes have it now.

        It is the one with the same destination, else with the same number in its route: its destination has changed.
        None if the routes have no such publication.
        """
        of_route = [each for each in self.publications if each.route.name == letter.route]
        same = (each for each in of_route if str(each.target) == letter.target)
        number = letter.publication.partition(" ")[0]
        return next(same, None) or next((each for each in of_route if str(each.number) == number), None)

    def keys(self) -> tuple[SealKeys, ...]:
        """Returns the keys of the seals of notes, as far as they are known now; see `engine.seals.keys_of_files`."""
        return keys_of_files(self.bridge_id, self.secret, self.checkpoint)
