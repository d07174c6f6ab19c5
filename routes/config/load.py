"""The way from a file to a `Config`, or to the list of everything that is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from routes.config.binding import Settings, bind
from routes.config.build import build
from routes.config.checks import check
from routes.config.compare import compare
from routes.config.reader import Document, read, read_text
from routes.errors import ConfigurationError, Fault, Level

if TYPE_CHECKING:
    from routes.config.compare import Change
    from routes.model import Config

__all__ = ["Linted", "diff", "lint", "lint_document", "lint_text", "load", "loads", "settings_of"]

_NO_FILES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Linted:
    """What lint has to say about a file."""

    config: Config | None
    """None if there is an error among the faults."""
    faults: tuple[Fault, ...]
    """Errors and warnings, in the order of the file; first what concerns the file as a whole."""

    @property
    def errors(self) -> tuple[Fault, ...]:
        """The faults that stop a start."""
        return tuple(fault for fault in self.faults if fault.level is Level.ERROR)


def load(path: str | Path, env: Mapping[str, str] | None = None) -> Config:
    """The configuration in a file; ConfigurationError holds all its faults if there is an error among them.

    `env` stands in for the process's environment in `${env:NAME}`.
    """
    return _config(lint(path, env))


def loads(text: str, base: str | Path = ".", env: Mapping[str, str] | None = None) -> Config:
    """The configuration in a text; relative paths start at `base`."""
    return _config(lint_text(text, base, env))


def lint(path: str | Path, env: Mapping[str, str] | None = None) -> Linted:
    """All faults of a file, and its configuration if none is an error. Never raises for what a file may hold."""
    path = Path(path)
    return lint_document(read(path), path, path.absolute().parent, env)


def lint_text(text: str, base: str | Path = ".", env: Mapping[str, str] | None = None) -> Linted:
    """All faults of a text."""
    base = Path(base).absolute()
    return lint_document(read_text(text), base / "jms-bridge.properties", base, env)


def diff(old: str | Path, new: str | Path, env: Mapping[str, str] | None = None) -> tuple[Change, ...]:
    """What is different between two files, see `Change`. Works for files with faults in them.

    ConfigurationError only if one cannot be read at all.
    """
    settings = []
    for path in map(Path, (old, new)):
        document = read(path)
        if not document.readable:
            raise ConfigurationError(document.faults)
        settings.append(settings_of(document, path.absolute().parent, env))
    return compare(*settings)


def settings_of(
    document: Document, base: Path, env: Mapping[str, str] | None, files: Mapping[str, str] = _NO_FILES
) -> Settings:
    """The settings of a file that could be read, with their own faults; see `lint_document`."""
    return bind(document.entries, os.environ if env is None else env, document.file, base, files)


def lint_document(
    document: Document,
    path: Path,
    base: Path,
    env: Mapping[str, str] | None,
    files: Mapping[str, str] = _NO_FILES,
) -> Linted:
    """All faults of what was read; `files` has what `${file:PATH}` stands for, by PATH, in place of the disk."""
    if not document.readable:
        return Linted(None, tuple(document.faults))
    settings = settings_of(document, base, env, files)
    check(settings)
    faults = tuple(
        sorted(
            [*settings.hidden(document.faults), *settings.masked_faults()], key=lambda fault: (fault.line, fault.column)
        )
    )
    failed = any(fault.level is Level.ERROR for fault in faults)
    return Linted(None if failed else build(settings, path, document.text), faults)


def _config(linted: Linted) -> Config:
    if linted.config is None:
        raise ConfigurationError(linted.faults)
    return linted.config
