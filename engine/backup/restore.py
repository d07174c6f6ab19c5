"""Restore of a bridge from its backup: what is lost comes back, and nothing that is there is overwritten.

Notes and positions in Kafka are as new as those of the backup, or newer, so the backup's are used only where Kafka has
none. The checkpoint is put in place where the folder is missing or empty, or beside the present one on request. An
older checkpoint is not a danger: the router goes on from the newer of checkpoint and notes, and finds in the outputs
what was published since (docs/scaling.md).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

from engine.backup.save import latest_notes, own_kafka_refusal
from engine.errors import HardFailureError, SetupError, UsageError
from engine.file_lock import is_locked
from engine.kafka.clients import KafkaClients
from engine.kafka.errors import refusal, unavailable
from engine.kafka.offsets import ANSWER_SECONDS, KafkaOffsets
from engine.kafka.topics import BridgeTopics
from engine.kafka.types import KafkaException, TopicPartition
from engine.private import make_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.backup.archive import Archive, Origin
    from engine.kafka.offsets import Topics
    from engine.record import Record
    from routes.model import Config

__all__ = ["Restore"]

_LEADER_SECONDS = 2.5
"""Time in which a bridge that leads commits twice to the group in which it was elected."""


@dataclass(frozen=True, slots=True)
class Restore:
    """Plan of a restore: what of a backup is missing now."""

    config: Config
    files: Mapping[str, bytes]
    """Files for the checkpoint folder, by path; empty if it stays as it is."""
    replaced: Path | None
    """New name of the present checkpoint folder; None if there is none."""
    notes: Sequence[Record]
    """Records for the state topic."""
    positions: Mapping[str, Topics]
    """Offsets to commit, by consumer group."""

    @classmethod
    def of(cls, config: Config, archive: Archive, *, replace: bool = False) -> Self:
        """Compares a backup with what there is; with `replace` the present checkpoint gets another name.

        Raises:
            UsageError: the backup is of another bridge, a bridge of this id runs, or the bridge has its own Kafka.
            HardFailureError: the journal is another one than that of the backup.
            SetupError: a router works with the checkpoint.
            UnreachableError: Kafka does not answer.
        """
        if config.embedded_kafka:
            raise own_kafka_refusal(config.embedded.data, config.router.checkpoint, "restore")
        _check_origin(archive.origin, config.bridge_id, config.journal.topic)
        clients = KafkaClients(config.kafka_access)
        kafka = KafkaOffsets(clients)
        _check_journal(archive.origin, kafka)
        _check_stopped(config.bridge_id, config.journal.state_topic, config.router.checkpoint, kafka)
        files, replaced = _checkpoint(config.router.checkpoint, archive.files, replace=replace)
        present = latest_notes(clients, config.journal.state_topic)
        notes = [record for record in archive.notes if record.key not in present]
        return cls(config, files, replaced, notes, _missing(kafka, archive.positions))

    @property
    def is_empty(self) -> bool:
        """True if nothing is missing."""
        return not (self.files or self.notes or self.positions)

    def run(self) -> None:
        """Puts back what is missing: the notes first, then the positions, and the checkpoint last.

        A restore that was interrupted can be repeated.

        Raises:
            HardFailureError: Kafka refuses the bridge.
            UnreachableError: Kafka does not answer.
            SetupError: the folder of the checkpoint cannot be written.
        """
        try:
            self._write_notes()
            self._commit_positions()
        except KafkaException as error:
            servers = self.config.kafka_access.servers
            raise refusal(error.args[0], servers, "the restore") or unavailable(servers, error.args[0].str()) from error
        self._write_files()

    def _write_notes(self) -> None:
        if not self.notes:
            return
        BridgeTopics(self.config).ensure_state_topic()
        failures: list[KafkaException] = []
        client = KafkaClients(self.config.kafka_access).producer({"acks": "all", "enable.idempotence": True})
        for record in self.notes:
            client.produce(
                self.config.journal.state_topic,
                record.value,
                record.key,
                headers=[*record.headers],
                on_delivery=lambda error, _: failures.extend([] if error is None else [KafkaException(error)]),
            )
        left = client.flush(ANSWER_SECONDS)
        if failures:
            raise failures[0]
        if left:
            raise unavailable(self.config.kafka_access.servers, f"{left} notes were not written")

    def _commit_positions(self) -> None:
        for group, topics in self.positions.items():
            client = KafkaClients(self.config.kafka_access).consumer(group)
            try:
                client.commit(
                    offsets=[
                        TopicPartition(topic, partition, offset)
                        for topic, offsets in topics.items()
                        for partition, offset in offsets.items()
                    ],
                    asynchronous=False,
                )
            finally:
                client.close()

    def _write_files(self) -> None:
        root = self.config.router.checkpoint
        if not self.files or not isinstance(root, Path):
            return
        draft = root.with_name(f"{root.name}.restore-{time.time_ns()}")
        try:
            for name, content in self.files.items():
                path = draft / name
                make_folder(path.parent)
                path.write_bytes(content)
                path.chmod(0o600)
            if self.replaced is not None:
                root.rename(self.replaced)
            draft.rename(root)
        except OSError as error:
            msg = f"the checkpoint {root} cannot be restored: {error}"
            raise SetupError(msg) from error


def _check_origin(origin: Origin, bridge_id: str, journal: str) -> None:
    for key, wanted, present in (
        ("bridge.id", origin.bridge_id, bridge_id),
        ("journal.topic", origin.journal, journal),
    ):
        if wanted != present:
            msg = f"the backup is of the bridge with {key}={wanted}, and the properties file has {key}={present}"
            raise UsageError(msg)


def _check_journal(origin: Origin, kafka: KafkaOffsets) -> None:
    journal, noted = origin.journal, origin.journal_id
    facts = kafka.topics([journal]).get(journal)
    if facts is None or (noted and facts.id and facts.id != noted):
        state = "does not exist" if facts is None else "was deleted and created again"
        msg = (
            f"the journal {journal!r} {state} since the backup was made, so its positions mean nothing now. Nothing "
            "was restored: start the bridge without a checkpoint, and it routes all that the journal has"
        )
        raise HardFailureError(msg)


def _check_stopped(bridge_id: str, state: str, checkpoint: Path | str, kafka: KafkaOffsets) -> None:
    group = f"{bridge_id}.leader"
    if isinstance(checkpoint, Path) and is_locked(checkpoint / "lock"):
        msg = f"a router works with the checkpoint {checkpoint}: stop the bridge first"
        raise SetupError(msg)
    if not kafka.partitions([state]):
        return
    before = kafka.committed(group, state, [0])
    time.sleep(_LEADER_SECONDS if before else 0)
    if before != kafka.committed(group, state, [0]):
        msg = f"a bridge with bridge.id={bridge_id} runs, maybe on another machine: stop it first"
        raise UsageError(msg)


def _checkpoint(
    root: Path | str, files: Mapping[str, bytes], *, replace: bool
) -> tuple[Mapping[str, bytes], Path | None]:
    """The files to write, and the new name of the folder that is there."""
    if not isinstance(root, Path) or not files:
        return {}, None
    try:
        is_there = any(path.name != "lock" for path in root.iterdir())
    except FileNotFoundError:
        return files, None
    except OSError as error:
        msg = f"the checkpoint {root} cannot be read: {error}"
        raise SetupError(msg) from error
    if is_there and not replace:
        return {}, None
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return files, root.with_name(f"{root.name}.before-restore-{moment}")


def _missing(kafka: KafkaOffsets, groups: Mapping[str, Topics]) -> dict[str, Topics]:
    """Positions of partitions in which a group has none, unless the partition is shorter: it is another one then."""
    missing: dict[str, Topics] = {}
    for group, topics in groups.items():
        ends = kafka.ends(topics)
        for topic, offsets in topics.items():
            present = kafka.committed(group, topic, ends.get(topic, {}))
            lost = {
                partition: offset
                for partition, offset in offsets.items()
                if partition not in present and offset <= ends.get(topic, {}).get(partition, -1)
            }
            if lost:
                missing.setdefault(group, {})[topic] = lost
    return missing
