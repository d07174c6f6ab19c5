"""Settings of Dropbox sources and sinks, each field with its key."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from routes.keys.table import key
from routes.keys.values import PATH, choice, duration
from routes.systems import Addresses, BrokerConfig, SinkConfig, SourceConfig, client_id, subscription

__all__ = ["ADDRESSES", "DropboxConfig", "DropboxSinkConfig", "DropboxSourceConfig", "FileWatch", "Processed"]

_PATTERN = (
    r"/?(?:queue[/:])?(?!(?:queue|topic)[/:]|(?:topic-root|dropboxmq|global-read-lock)$)"
    r"[^\x00-\x1f\x7f./][^\x00-\x1f\x7f/]{0,254}"
    r"|/?topic[/:][^\x00-\x1f\x7f./]{1,255}(?:\.[^\x00-\x1f\x7f./]{1,255}){0,30}"
)
"""Names of dropboxes become names of folders: none begins with a dot, leads out of its folder or means something to
DropboxMQ."""


class FileWatch(StrEnum):
    """Ways in which a dropbox source notices new files: notified by the system, or by looking at intervals."""

    INOTIFY = "inotify"
    SCAN = "scan"


class Processed(StrEnum):
    """Treatment of files by a dropbox source after the journal has them."""

    KEEP = "keep"
    DELETE = "delete"


@dataclass(frozen=True, kw_only=True)
class DropboxConfig(BrokerConfig):
    """Settings of the folder that contains dropboxes."""

    root: Path | None = key(
        "root",
        PATH,
        "Folder that holds the dropboxes. A relative path begins at this file.",
        default_note="`dropbox` in `embedded.data`, which is made when missing",
        example="spool/dropbox",
    )
    """The folder that contains the dropboxes; None: one in the data folder of the embedded brokers."""
    client_id: str | None = client_id()

    @property
    def folder(self) -> Path | None:
        """See `BrokerConfig`."""
        return self.root


@dataclass(frozen=True, kw_only=True)
class DropboxSourceConfig(DropboxConfig, SourceConfig):
    """Settings of a source of files; destinations are `queue:NAME` or `topic:NAME`."""

    subscription: str | None = subscription(made=lambda value, _, name: value or name)
    """Name of the durable subscription on topics, that of the source if the file names none; None: not durable."""
    watch: FileWatch = key(
        "watch",
        choice(FileWatch),
        "Way of noticing new files: `inotify` has the system report them, `scan` is for folders that other machines "
        "write to. Folders are scanned every `scan-interval` in any case.",
        default="inotify",
    )
    scan_interval_seconds: float = key(
        "scan-interval", duration("10ms", "10m"), "Time between two scans of the folders.", default="1s"
    )
    processed: Processed = key(
        "processed",
        choice(Processed),
        "Treatment of files whose messages are in the journal: they are kept in the folder `processed`, or deleted.",
        default="keep",
    )


@dataclass(frozen=True, kw_only=True)
class DropboxSinkConfig(DropboxConfig, SinkConfig):
    """Settings of a sink of files."""


ADDRESSES = Addresses(_PATTERN, "queue/NAME, topic/NAME or the NAME of a queue, as in dropbox:queue/orders")
