"""A properties file as it was at one moment, with the files its values come from; a running bridge keeps one.

Edits of the file do not change a snapshot, and all processes that are given it read the same.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from routes.config.load import lint_document, settings_of
from routes.config.reader import read, read_text
from routes.errors import ConfigurationError
from routes.keys.secrets import contents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from routes.config.load import Linted
    from routes.config.reader import Document
    from routes.keys.settings import Settings
    from routes.model import Config

__all__ = ["Snapshot"]

_HASH_DIGITS = 16
_PAUSED = "routes.NAME.paused"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Text of a properties file, and of the files that it refers to."""

    path: Path
    text: str = field(repr=False)
    files: Mapping[str, str] = field(repr=False)
    """Content by PATH of each `${file:PATH}` that could be read."""
    paused: frozenset[str] = frozenset()
    """Names of routes that are paused although the file does not say so."""

    @classmethod
    def take(cls, path: Path) -> Snapshot:
        """Reads the file as it is now; raises ConfigurationError if it cannot be read."""
        document = read(path)
        if not document.readable:
            raise ConfigurationError(document.faults)
        values = (entry.value for entry in document.entries)
        return cls(path, document.text, contents(values, path.absolute().parent))

    def with_paused(self, routes: Iterable[str]) -> Snapshot:
        """Returns the snapshot with these routes paused, and no others beyond those that the file pauses."""
        return replace(self, paused=frozenset(routes))

    @property
    def hash(self) -> str:
        """The first digits of the SHA-256 of the properties file, as `sha256sum` prints it."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:_HASH_DIGITS]

    def lint(self, env: Mapping[str, str] | None = None) -> Linted:
        """Returns faults and configuration, as `routes.config.lint` does for a file."""
        return lint_document(self._document(), self.path, self.path.absolute().parent, env, self.files)

    def load(self, env: Mapping[str, str] | None = None) -> Config:
        """Returns the configuration, or raises, as `routes.config.load` does for a file."""
        linted = self.lint(env)
        if linted.config is None:
            raise ConfigurationError(linted.faults)
        return linted.config

    def settings(self, env: Mapping[str, str] | None = None) -> Settings:
        """Returns the settings of the file."""
        return settings_of(self._document(), self.path.absolute().parent, env, self.files)

    def dump(self) -> bytes:
        """Returns the snapshot as bytes, for `of` in another process."""
        content = {"path": str(self.path), "text": self.text, "files": dict(self.files), "paused": sorted(self.paused)}
        return json.dumps(content).encode()

    @classmethod
    def of(cls, dumped: bytes) -> Snapshot:
        """Restores a snapshot from the bytes of `dump`."""
        content = json.loads(dumped)
        return cls(Path(content["path"]), content["text"], content["files"], frozenset(content["paused"]))

    def line_of_pause(self, route: str) -> str:
        """Returns the place of the line of the file by which a route is paused or not, as `file:line`; empty: none."""
        settings = self.with_paused(()).settings()
        for name in settings.names("routes"):
            entry = settings.entry(_PAUSED, name)
            if entry is not None and settings.effective("routes.NAME.name", name) == route:
                return f"{self.path}:{entry.line}"
        return ""

    def _document(self) -> Document:
        """The file, with a line more for each route that is paused and for which it has no such line."""
        document = read_text(self.text, str(self.path))
        if not self.paused or not document.readable:
            return document
        settings = settings_of(document, self.path.absolute().parent, None, self.files)
        lines = [
            f"{_PAUSED.replace('NAME', name)}=true\n"
            for name in settings.names("routes")
            if settings.effective("routes.NAME.name", name) in self.paused and not settings.is_set(_PAUSED, name)
        ]
        # The empty line ends a last line that goes on.
        return read_text("".join([self.text, "\n\n", *lines]), str(self.path))
