"""Backup of a bridge, running or stopped: nothing in Kafka or in the checkpoint changes."""

from __future__ import annotations

import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from engine.backup.archive import Archive, Origin
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.kafka.settings import KafkaSourceConfig
from engine.connectors.kafka.source import group_of, is_wanted
from engine.errors import SetupError, UsageError
from engine.kafka.clients import KafkaClients, sink_group
from engine.kafka.cluster import Cluster
from engine.kafka.offsets import ANSWER_SECONDS, KafkaOffsets
from engine.kafka.reader import KafkaTopicReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engine.kafka.offsets import Offsets
    from engine.record import Record
    from routes.model import Config

__all__ = ["latest_notes", "own_kafka_refusal", "saved"]

_ATTEMPTS, _PAUSE_SECONDS = 20, 0.2
"""Number of readings of a checkpoint whose files are removed meanwhile, and the pause between two of them."""


def saved(config: Config, version: str) -> Archive:
    """Makes a backup; `version` is that of the program.

    Raises:
        UsageError: the bridge has a Kafka of its own.
        SetupError: the checkpoint cannot be read.
        UnreachableError: Kafka does not answer.
        HardFailureError: Kafka refuses the bridge.
    """
    checkpoint, journal = config.router.checkpoint, config.journal.topic
    if config.embedded_kafka:
        raise own_kafka_refusal(config.embedded.data, checkpoint, "copy")
    # Positions only grow. Notes and positions that are older than the checkpoint are what a restore expects.
    clients = KafkaClients(config.kafka_access)
    kafka = KafkaOffsets(clients)
    positions = {
        group: {topic: offsets for topic in topics if (offsets := _committed(kafka, group, topic))}
        for group, topics in _groups(config)
    }
    notes = latest_notes(clients, config.journal.state_topic).values()
    files = _files(checkpoint) if isinstance(checkpoint, Path) else {}
    origin = Origin(
        bridge_id=config.bridge_id,
        journal=journal,
        journal_id=kafka.identity(journal),
        checkpoint=str(checkpoint.absolute() if isinstance(checkpoint, Path) else checkpoint),
        host=socket.gethostname(),
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        version=version,
    )
    return Archive(origin, files, [note for note in notes if note.value is not None], positions)


def own_kafka_refusal(data: Path, checkpoint: Path | str, verb: str) -> UsageError:
    """Returns the error for a bridge that starts its own Kafka, which has everything in one folder with its messages.

    Args:
        data: the folder of the bridge's own files.
        checkpoint: the folder of the checkpoint.
        verb: what the user is to do with both, as in "copy".
    """
    return UsageError(
        f"the bridge has a Kafka of its own, whose files are all in {data.absolute()}: stop the bridge and {verb} that "
        f"folder (embedded.data), with the folder {checkpoint} (router.checkpoint)"
    )


def latest_notes(clients: KafkaClients, topic: str) -> Mapping[bytes | None, Record]:
    """The last record of each key in a compacted topic, those without a value included; none if the topic is missing.

    Raises:
        UnreachableError: Kafka does not answer.
        HardFailureError: Kafka refuses the bridge.
    """
    notes: dict[bytes | None, Record] = {}
    try:
        with KafkaTopicReader(clients, topic) as reader:
            for located in reader.present():
                # Removed first, so that the order is that of the last records.
                notes.pop(located.record.key, None)
                notes[located.record.key] = located.record
    except UsageError:
        return {}
    return notes


def _groups(config: Config) -> Iterator[tuple[str, Sequence[str]]]:
    """Consumer groups of sinks, and of sources that read the bridge's own Kafka, each with its topics."""
    for sink in config.sinks:
        yield sink_group(config.bridge_id, sink.name), [sink.topic]
    for source in config.sources:
        if isinstance(source, KafkaSourceConfig) and source.in_own_cluster:
            endpoint = SystemEndpoint.of(config, source)
            names = Cluster(endpoint.kafka, ANSWER_SECONDS).names()
            yield group_of(endpoint), [name for name in names if is_wanted(endpoint, name)]


def _committed(kafka: KafkaOffsets, group: str, topic: str) -> Offsets:
    return kafka.committed(group, topic, range(kafka.partitions([topic]).get(topic, 0)))


def _files(root: Path) -> dict[str, bytes]:
    """Content of the files in a checkpoint, by path; files that their writers have not finished are left out."""
    for _ in range(_ATTEMPTS):
        try:
            return {
                path.relative_to(root).as_posix(): path.read_bytes()
                for path in sorted(root.rglob("*"))
                if path.is_file() and path != root / "lock" and not path.name.startswith(".") and path.suffix != ".tmp"
            }
        except FileNotFoundError:
            # Spark has removed a file that it needs no more.
            time.sleep(_PAUSE_SECONDS)
        except OSError as error:
            msg = f"the checkpoint {root} cannot be read: {error}"
            raise SetupError(msg) from error
    msg = f"the files of the checkpoint {root} change all the time; repeat the backup, or stop the bridge for it"
    raise SetupError(msg)
