"""The embedded Artemis with changes to its configuration: among others, a broker and a backup that share a store."""

from __future__ import annotations

import os
import shutil
import signal
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from engine.embedded import EmbeddedArtemis, free_ports
from engine.embedded.ports import accepts
from engine.embedded.server import ETC
from engine.jars import jars

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["ArtemisPair", "ChangedArtemis"]

_PRIMARY = "<primary><failover-on-shutdown>true</failover-on-shutdown></primary>"
_BACKUP = "<backup><allow-failback>true</allow-failback></backup>"
_WAITS = "AMQ221032"
"""Line of a backup's log: it waits until it may use the store."""


class ChangedArtemis(EmbeddedArtemis):
    """An Artemis with a configuration of its own."""

    @property
    def port(self) -> int:
        return urlsplit(self.stomp_url).port or 0

    def changes(self) -> Mapping[str, str]:
        """Texts of the configuration, each with the one that takes its place."""
        raise NotImplementedError

    @property
    def etc(self) -> Path:
        """Folder of the configuration."""
        return self.folder.parent / "etc"

    def _prepare(self, java: Path) -> None:
        super()._prepare(java)
        shutil.copytree(ETC, self.etc, dirs_exist_ok=True)
        text = (ETC / "broker.xml").read_text()
        for old, new in self.changes().items():
            assert old in text
            text = text.replace(old, new)
        (self.etc / "broker.xml").write_text(text)

    def _program(self) -> Sequence[str | Path]:
        moved = {ETC.as_uri(): self.etc.as_uri(), f"instance.etc={ETC}": f"instance.etc={self.etc}"}
        own = [str(part) for part in super()._program()]
        for old, new in moved.items():
            own = [part.replace(old, new) for part in own]
        return own

    def _answers(self) -> bool:
        return accepts(self.port)


class _Member(ChangedArtemis):
    """One of a pair; `store` is the folder that both have, `other_port` the other's port for Artemis' own clients."""

    def __init__(self, data: Path, ports: Sequence[int], store: Path, policy: str, other_port: int) -> None:
        core, stomp, amqp = ports
        super().__init__(data, core, stomp, amqp, jars())
        self._store, self._policy, self._other = store, policy, other_port

    def changes(self) -> Mapping[str, str]:
        connectors = "".join(
            f'<connector name="{name}">tcp://127.0.0.1:{port}</connector>'
            for name, port in (("self", "${jmsbridge.core}"), ("other", self._other))
        )
        cluster = (
            '<cluster-connection name="pair"><connector-ref>self</connector-ref>'
            "<static-connectors><connector-ref>other</connector-ref></static-connectors></cluster-connection>"
        )
        policy = f"<ha-policy><shared-store>{self._policy}</shared-store></ha-policy>"
        login = "<cluster-user>pair</cluster-user><cluster-password>pair</cluster-password>"
        clustered = f"<cluster-connections>{cluster}</cluster-connections>"
        return {
            "directory>data/": f"directory>{self._store}/",
            "<acceptors>": f"<connectors>{connectors}</connectors>{login}{policy}{clustered}<acceptors>",
        }

    def _answers(self) -> bool:
        return super()._answers() or _WAITS in self._logged()

    def kill(self) -> None:
        """Ends the process without a word."""
        assert self.pid is not None
        os.kill(self.pid, signal.SIGKILL)
        self.stop()


class ArtemisPair:
    """A broker and its backup, which takes over when the broker is gone, and gives back when it has returned."""

    def __init__(self, folder: Path) -> None:
        ports, others = free_ports(3), free_ports(3)
        store = folder / "store"
        self.primary = _Member(folder / "primary", ports, store, _PRIMARY, others[0])
        self.backup = _Member(folder / "backup", others, store, _BACKUP, ports[0])

    def start(self) -> None:
        """Returns when the broker serves and the backup waits."""
        self.primary.start()
        self.backup.start()

    def stop(self) -> None:
        self.backup.stop()
        self.primary.stop()
