"""Loads a file: to a `Config`, or to the list of all its faults."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from routes.config.binding import bind
from routes.config.build import build
from routes.config.checks import check
from routes.config.compare import compare
from routes.config.reader import Document, read, read_text
from routes.errors import ConfigurationError, Fault, Level
from routes.keys.settings import Settings

if TYPE_CHECKING:
    from routes.config.compare import Change
    from routes.model import Config

__all__ = [
    "Linted",
    "SettingsCheck",
    "diff",
    "lint",
    "lint_document",
    "lint_text",
    "load",
    "loads",
    "loads_routes",
    "settings_of",
]

SettingsCheck: TypeAlias = Callable[[Settings], None]
"""Check of all settings, to which it adds its faults."""
_NO_FILES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Linted:
    """The result of lint for a file."""

    config: Config | None
    """The configuration; None if there is an error among the faults."""
    faults: tuple[Fault, ...]
    """Errors and warnings, in the order of the file; faults of the file as a whole come first."""

    @property
    def errors(self) -> tuple[Fault, ...]:
        """The faults that stop a start."""
        return tuple(fault for fault in self.faults if fault.level is Level.ERROR)


def load(path: str | Path, env: Mapping[str, str] | None = None) -> Config:
    """Returns the configuration in a file.

    `env` is used in place of the process's environment for `${env:NAME}`.

    Raises:
        ConfigurationError: there is an error in the file; it holds all faults.
    """
    return _config(lint(path, env))


def loads(text: str, base: str | Path = ".", env: Mapping[str, str] | None = None) -> Config:
    """Returns the configuration in a text; relative paths start at `base`."""
    return _config(lint_text(text, base, env))


def loads_routes(text: str, base: str | Path = ".", env: Mapping[str, str] | None = None) -> Config:
    """Returns the configuration in an extract of a file that was checked as a whole when it was in force.

    The extract has the lines that determine the routing (`engine.router.past_routes.routes_text`). Checks between keys
    are left out: the keys that a source or a sink needs are not in the extract, and files that they name may be gone.

    Raises:
        ConfigurationError: a line cannot be read.
    """
    base = Path(base).absolute()
    document = read_text(text)
    settings = settings_of(document, base, env)
    faults = (*document.faults, *settings.masked_faults())
    if any(fault.level is Level.ERROR for fault in faults):
        raise ConfigurationError(faults)
    return build(settings, base / "jms-bridge.properties", text)


def lint(path: str | Path, env: Mapping[str, str] | None = None, checks: Iterable[SettingsCheck] = ()) -> Linted:
    """Returns all faults of a file, and its configuration if none is an error.

    Never raises for any content of the file. `checks` are further ones, for which a start has no time.
    """
    path = Path(path)
    return lint_document(read(path), path, path.absolute().parent, env, checks=checks)


def lint_text(
    text: str, base: str | Path = ".", env: Mapping[str, str] | None = None, checks: Iterable[SettingsCheck] = ()
) -> Linted:
    """Returns all faults of a text, and its configuration if none is an error; `checks` as for `lint`."""
    base = Path(base).absolute()
    return lint_document(read_text(text), base / "jms-bridge.properties", base, env, checks=checks)


def diff(old: str | Path, new: str | Path, env: Mapping[str, str] | None = None) -> tuple[Change, ...]:
    """Returns the differences between two files, see `Change`. Works for files with faults in them.

    Raises:
        ConfigurationError: one of them cannot be read at all.
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
    """Returns the settings of a file that could be read, with their own faults; see `lint_document`."""
    return bind(document.entries, os.environ if env is None else env, document.file, base, files)


def lint_document(
    document: Document,
    path: Path,
    base: Path,
    env: Mapping[str, str] | None,
    files: Mapping[str, str] = _NO_FILES,
    checks: Iterable[SettingsCheck] = (),
) -> Linted:
    """Returns all faults of a document; `files` has the contents for `${file:PATH}`, by PATH, in place of the disk."""
    if not document.readable:
        return Linted(None, tuple(document.faults))
    settings = settings_of(document, base, env, files)
    check(settings)
    for further in checks:
        further(settings)
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
