"""Progress of the router's last run, read from its checkpoint or from Kafka, and checks that the journal is the same.

The checkpoint is more precise and is used if the last run wrote it. If the last run was on another machine or in
another folder, its notes in Kafka are used. If the checkpoint of the last run should be here but is missing or damaged,
the router does not start: the error offers the operator two remedies.

`check_progress` makes these checks before Spark, whose start takes seconds. The router repeats them when it holds the
checkpoint's lock (`engine.router.recovery`). A checkpoint at a URI is read by Spark's JVM, and only then.
"""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from engine.errors import HardFailureError
from engine.kafka.clients import KafkaClients
from engine.kafka.offsets import KafkaOffsets
from engine.router.generation import DamagedError, Generations, NewerFormatError
from engine.router.position_store import PositionStore, UnreadableNoteError
from engine.router.secret import known_keys
from engine.spark.launch import log_file
from engine.spark.section import SparkConfig
from engine.spark.settings import is_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.kafka.offsets import Offsets
    from engine.router.generation import Generation, RouterProgress, Start
    from engine.router.position_store import NotedProgress
    from engine.seals import SealKeys
    from engine.spark.stored_files import Folder
    from routes.model import Config, JournalConfig

__all__ = ["check_end", "check_journal", "check_progress", "is_refusal_likely", "last_progress", "noted"]

_NO_SEAL = "the last note in journal.state-topic is not one of this bridge, and is left out: others write to that topic"
_SHOWN = 32
"""Greatest number of characters of a run's id in the log: others may write any text."""
_log = structlog.get_logger(__name__)


def noted(
    store: PositionStore,
    generations: Generations,
    journal_id: str,
    keys: Sequence[SealKeys],
    *,
    is_trial: bool = False,
) -> NotedProgress | None:
    """The notes in Kafka; None if there are none, or if they cannot be read and there is a checkpoint to go on from.

    The arguments are those of `last_progress`.

    Raises:
        HardFailureError: the notes cannot be read, and there is no checkpoint; or Kafka refuses the bridge.
    """
    try:
        return store.read(keys, journal_id)
    except UnreadableNoteError as error:
        try:
            newest = generations.newest()
        except DamagedError:
            newest = None
        if newest is None:
            raise
        if not is_trial:
            _log.error("the note in Kafka is not the bridge's own; the checkpoint is used", why=str(error))
        return None


def last_progress(
    generations: Generations,
    entry: NotedProgress | None,
    journal_id: str,
    keys: Sequence[SealKeys] = (),
    *,
    is_trial: bool = False,
) -> RouterProgress | None:
    """Progress of the last run; None if there was none.

    Args:
        generations: the checkpoint folder of the configuration.
        entry: the notes in Kafka, None if there are none.
        journal_id: Kafka's id of the journal, empty if it has none; an entry about another journal is ignored.
        keys: keys that are known here; an entry that claims to be of here without a seal of them is ignored.
        is_trial: nothing is logged.

    Raises:
        HardFailureError: the checkpoint is damaged or missing.
    """
    entry = _of_journal(entry, journal_id)
    try:
        newest = generations.newest()
        if entry is not None and _is_foreign(entry, newest, generations.root, keys):
            if not is_trial:
                _log.error(_NO_SEAL, run=entry.progress.start.run[:_SHOWN])
            entry = entry.own
        if newest is None and entry is not None and _is_of_here(entry, generations.root):
            raise DamagedError(f"there is none in {generations.root} any more")
        if newest is not None and (entry is None or _is_last(newest, entry)):
            return newest.progress()
    except DamagedError as error:
        if entry is None or _is_of_here(entry, generations.root):
            raise HardFailureError(_refusal(error, generations.root, entry)) from error
        if not is_trial:
            _log.warning("the checkpoint of an earlier run cannot be used, and is not needed", why=str(error))
    if entry is None:
        return None
    if not is_trial:
        _log.info("continues from the position noted in Kafka", host=entry.host, checkpoint=entry.path, age=_age(entry))
    return entry.progress


def _of_journal(entry: NotedProgress | None, journal_id: str) -> NotedProgress | None:
    if entry and journal_id and entry.progress.start.journal_id not in ("", journal_id):
        # Others may have written it: the bridge's own note counts then.
        return _of_journal(entry.own, journal_id)
    return entry


def check_journal(journal: JournalConfig, checkpoint: Path | str, start: Start, journal_id: str) -> None:
    """Checks that the last run read the journal of the configuration; `journal_id` is that journal's id in Kafka.

    Raises:
        HardFailureError: the last run read another journal.
    """
    if start.journal != journal.topic:
        msg = (
            f"journal.topic is {journal.topic!r}, but the checkpoint {checkpoint} belongs to the "
            f"journal {start.journal!r}. Either set it back, or set another router.checkpoint: messages "
            "of the old journal that are not routed yet then stay there"
        )
        raise HardFailureError(msg)
    if start.journal_id and journal_id and journal_id != start.journal_id:
        raise _journal_refusal(journal, checkpoint, "was deleted and created again", "")


def check_end(journal: JournalConfig, checkpoint: Path | str, positions: Offsets, ends: Offsets) -> None:
    """Checks that no position, by journal partition, exceeds the journal's end.

    Raises:
        HardFailureError: a position exceeds it; the journal has lost records.
    """
    if any(at > ends.get(partition, 0) for partition, at in positions.items()):
        # The operator has to remove the state topic too: its notes are about this journal, and would be used if only
        # the checkpoint were removed.
        raise _journal_refusal(journal, checkpoint, "has lost its end", f", and the topic {journal.state_topic!r}")


def _journal_refusal(journal: JournalConfig, checkpoint: Path | str, what: str, beside: str) -> HardFailureError:
    return HardFailureError(
        f"the journal {journal.topic!r} {what} since the router last ran. Either restore it, or as "
        f"the last resort remove {checkpoint}{beside}: the router then publishes all messages that "
        "the journal holds now, also those that it has published before"
    )


def _is_last(newest: Generation, entry: NotedProgress) -> bool:
    """True if `newest` is the noted run, or the one after it, which died before its note and thus published nothing.

    Also if the note is of an earlier run: somebody has repeated it, or Kafka has lost later ones.
    """
    noted_run = entry.progress.start
    is_older = entry.is_sealed and noted_run.sequence < newest.start.sequence
    return is_older or noted_run.run in (newest.start.run, newest.start.after)


def _is_foreign(entry: NotedProgress, newest: Generation | None, root: Folder, keys: Sequence[SealKeys]) -> bool:
    """True if the notes would have the seal of a key that is known here, had this bridge written them.

    A bridge on another host without a common `bridge.secret` seals with a key that is not known here.
    """
    known = {each.id for each in keys}
    begun = entry.progress.start
    has_sealed = entry.own is not None or (newest is not None and newest.start.seal in known)
    if entry.is_sealed or not has_sealed:
        return False
    return any(each.is_shared for each in keys) or _is_of_here(entry, root) or begun.seal in {"", *known}


def _is_of_here(entry: NotedProgress, root: Folder) -> bool:
    # A path is that of a folder on one machine only.
    return entry.path == str(root.absolute()) and (not isinstance(root, Path) or entry.host == socket.gethostname())


def _refusal(error: DamagedError, root: Folder, entry: NotedProgress | None) -> str:
    if isinstance(error, NewerFormatError):
        return (
            f"the router's checkpoint cannot be used: {error}. Start that version again, or restore {root} from a copy "
            "that this version wrote"
        )
    way_out = (
        "remove it: the router then begins at the first record the journal still holds, and publishes again what it "
        "had published before"
        if entry is None
        else f"set router.checkpoint to another folder{_with_secret(root)}: the router then goes on from where it was "
        f"by its note in Kafka, which is {_age(entry)} old, without loss or duplicates"
    )
    return f"the router's checkpoint cannot be used: {error}. Either restore {root} from a copy, or {way_out}"


def _with_secret(root: Folder) -> str:
    return f", with a copy of {root / 'secret'}" if (root / "secret").exists() else ""


def _age(entry: NotedProgress) -> str:
    seconds = max(time.time() - entry.time_ms / 1000, 0.0)
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def check_progress(config: Config, *, leads: bool) -> None:
    """Checks that the router can continue from the progress of the last run; does nothing for a checkpoint at a URI.

    If the bridge `leads`, this first ends the writing of earlier routers to the store, so that none of their notes
    is still under way.

    Raises:
        HardFailureError: the checkpoint is damaged or missing, or belongs to another journal.
        UnreachableError: Kafka does not answer.
    """
    journal, checkpoint = config.journal, config.router.checkpoint
    if not isinstance(checkpoint, Path):
        return
    clients = KafkaClients(config.kafka_access)
    kafka, store = KafkaOffsets(clients), PositionStore(clients, config.bridge_id, journal)
    if leads:
        store.open()
    identity = kafka.identity(journal.topic)
    generations, keys = Generations(checkpoint), known_keys(config.bridge_id, config.secret, checkpoint)
    entry = noted(store, generations, identity, keys, is_trial=True)
    last = last_progress(generations, entry, identity, keys, is_trial=True)
    if last is not None:
        check_journal(journal, checkpoint, last.start, identity)
        check_end(journal, checkpoint, last.positions, kafka.ends([journal.topic]).get(journal.topic, {}))


def is_refusal_likely(config: Config) -> bool:
    """True if Spark is to start only after Kafka was looked at, because a check is likely to refuse the start.

    Otherwise Spark starts first of all.
    """
    master = config.section(SparkConfig).get("spark.master")
    if master is not None and not is_cluster(master):
        # The start is refused if it has fewer task slots than the journal has partitions.
        return True
    if not isinstance(config.router.checkpoint, Path):
        return False
    try:
        newest = Generations(config.router.checkpoint).newest()
        if newest is None:
            # If an earlier router has left its traces, the checkpoint has been lost.
            journal = config.embedded.data / "kafka" / "data" / f"{config.journal.topic}-0"
            return (journal if config.embedded_kafka else log_file(config.embedded.data)).exists()
        newest.progress()
    except DamagedError:
        return True
    return newest.start.journal != config.journal.topic
