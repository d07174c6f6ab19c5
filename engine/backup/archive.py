"""Content of a backup and its file: a gzipped tar with a description, and a checksum of each other member.

    backup.json        who made it, of which bridge and journal, when, and the SHA-256 of each other member
    state.jsonl        the records of the state topic, one on each line
    positions.json     offsets by consumer group, topic and partition
    checkpoint/...     the files of the checkpoint folder

The secret of the checkpoint is among the files, so only the user who makes a backup may read it.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from engine.errors import UsageError
from engine.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from engine.kafka.offsets import Topics

__all__ = ["Archive", "Origin", "read", "write"]

_FORMAT = 1
_DESCRIPTION, _NOTES, _POSITIONS, _FILES = "backup.json", "state.jsonl", "positions.json", "checkpoint/"
_MOST_BYTES = 1 << 30
"""Greatest size of all members together; thousands of partitions make a few megabytes."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Bridge whose progress a backup holds, and where and when it was made."""

    bridge_id: str
    journal: str
    """Name of the journal topic."""
    journal_id: str
    """Kafka's id of the journal topic; empty if the broker has none."""
    checkpoint: str
    """Path or URI of the checkpoint folder."""
    host: str
    """Name of the machine on which the backup was made."""
    time: str
    """Time of the backup, as in ISO 8601."""
    version: str
    """Version of the program that made it."""


@dataclass(frozen=True, slots=True)
class Archive:
    """Content of a backup."""

    origin: Origin
    files: Mapping[str, bytes]
    """Content of the files of the checkpoint, by their paths in it; empty for a checkpoint at a URI."""
    notes: Sequence[Record]
    """Records of the state topic, in their order."""
    positions: Mapping[str, Topics]
    """Committed offsets by consumer group."""


def write(path: Path, archive: Archive) -> None:
    """Writes a backup to a new file with mode 0600, in one step.

    Raises:
        UsageError: there is such a file, or it cannot be written.
    """
    members = {
        _NOTES: b"".join(_line(record) for record in archive.notes),
        _POSITIONS: json.dumps(archive.positions).encode(),
        **{f"{_FILES}{name}": content for name, content in archive.files.items()},
    }
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    origin = {name: getattr(archive.origin, name) for name in Origin.__slots__}
    description = json.dumps({"format": _FORMAT, **origin, "sha256": sums}, indent=1).encode()
    draft = path.with_name(f"{path.name}.tmp")
    try:
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            with tarfile.open(fileobj=file, mode="w:gz") as tar:
                for name, content in {_DESCRIPTION: description, **members}.items():
                    member = tarfile.TarInfo(name)
                    member.size, member.mode = len(content), 0o600
                    tar.addfile(member, io.BytesIO(content))
            file.flush()
            os.fsync(file.fileno())
        # A link fails where a file has the name, which a rename would replace.
        os.link(draft, path)
        draft.unlink()
    except FileExistsError as error:
        draft.unlink(missing_ok=True)
        msg = f"{path}: there is such a file: name another one, or remove it first"
        raise UsageError(msg) from error
    except OSError as error:
        msg = f"{path}: the backup cannot be written: {error.strerror}"
        raise UsageError(msg) from error


def read(path: Path) -> Archive:
    """Reads a backup.

    Raises:
        UsageError: the file cannot be read, is not a backup, is damaged, or is of a later version of the program.
    """
    try:
        members = _members(path)
        fields = json.loads(members.pop(_DESCRIPTION))
        if fields["format"] != _FORMAT:
            msg = f"{path}: the backup was made by version {fields.get('version')}; restore it with that version"
            raise UsageError(msg)
        sums: Mapping[str, str] = fields["sha256"]
        for name in sorted({*sums, *members}):
            if name not in members or hashlib.sha256(members[name]).hexdigest() != sums.get(name):
                msg = f"{path}: the backup is damaged: {name} is missing or another one; take another backup"
                raise UsageError(msg)
        return Archive(
            Origin(**{name: str(fields[name]) for name in Origin.__slots__}),
            {name.removeprefix(_FILES): content for name, content in members.items() if name.startswith(_FILES)},
            [_record(json.loads(line)) for line in members[_NOTES].splitlines()],
            _positions(json.loads(members[_POSITIONS])),
        )
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        msg = f"{path}: the backup cannot be read: {error.strerror}"
        raise UsageError(msg) from error
    except (OSError, tarfile.TarError, zlib.error, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        msg = f"{path}: the file is not a backup, or damaged: {error}"
        raise UsageError(msg) from error


def _members(path: Path) -> dict[str, bytes]:
    """Content of the regular files in a tar; ValueError for other members, bad names and more than `_MOST_BYTES`."""
    members: dict[str, bytes] = {}
    left = _MOST_BYTES
    with tarfile.open(path, "r|gz") as tar:
        for member in tar:
            name = PurePosixPath(member.name)
            if not member.isfile() or name.is_absolute() or ".." in name.parts or member.name != str(name):
                msg = f"member {member.name!r} is not a plain file"
                raise ValueError(msg)
            left -= member.size
            if left < 0:
                msg = f"more than {_MOST_BYTES >> 20} MiB"
                raise ValueError(msg)
            if (file := tar.extractfile(member)) is not None:
                members[member.name] = file.read()
    return members


def _line(record: Record) -> bytes:
    headers = [(name, _text(value)) for name, value in record.headers]
    return json.dumps({"key": _text(record.key), "headers": headers, "value": _text(record.value)}).encode() + b"\n"


def _record(fields: Mapping[str, Any]) -> Record:
    headers = tuple((str(name), _bytes(value)) for name, value in fields["headers"])
    return Record(_bytes(fields["key"]), _bytes(fields["value"]), headers)


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)


def _positions(groups: Mapping[str, Any]) -> dict[str, Topics]:
    return {
        group: {topic: {int(number): int(offset) for number, offset in each.items()} for topic, each in topics.items()}
        for group, topics in groups.items()
    }
