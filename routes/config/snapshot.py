"""A properties file as it was at one moment, with the files its values come from; a running bridge keeps one.

Edits of the file do not change a snapshot, and all processes that are given it read the same.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from routes.config.load import lint_document, settings_of
from routes.config.reader import read, read_text
from routes.errors import ConfigurationError
from routes.keys.secrets import contents

if TYPE_CHECKING:
    from collections.abc import Mapping

    from routes.config.load import Linted
    from routes.config.reader import Document
    from routes.keys.settings import Settings
    from routes.model import Config

__all__ = ["Snapshot"]

_HASH_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Text of a properties file, and of the files that it refers to."""

    path: Path
    text: str = field(repr=False)
    files: Mapping[str, str] = field(repr=False)
    """Content by PATH of each `${file:PATH}` that could be read."""

    @classmethod
    def take(cls, path: Path) -> Snapshot:
        """Reads the file as it is now; raises ConfigurationError if it cannot be read."""
        document = read(path)
        if not document.readable:
            raise ConfigurationError(document.faults)
        values = (entry.value for entry in document.entries)
        return cls(path, document.text, contents(values, path.absolute().parent))

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
        return json.dumps({"path": str(self.path), "text": self.text, "files": dict(self.files)}).encode()

    @classmethod
    def of(cls, dumped: bytes) -> Snapshot:
        """Restores a snapshot from the bytes of `dump`."""
        content = json.loads(dumped)
        return cls(Path(content["path"]), content["text"], content["files"])

    def _document(self) -> Document:
        return read_text(self.text, str(self.path))
