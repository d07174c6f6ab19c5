"""A configuration as rows for a person: every key, its value, and where that comes from. Secrets stay masked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from routes.config.binding import bind
from routes.config.fields import FIELDS
from routes.config.reader import read
from routes.config.secrets import MASK, hide_credentials, is_reference, is_secret_key
from routes.errors import ConfigurationError

if TYPE_CHECKING:
    from routes.config.binding import Setting, Settings
    from routes.config.table import Field

__all__ = ["Row", "show"]


@dataclass(frozen=True, slots=True)
class Row:
    """One key."""

    key: str
    value: str
    """As written in the file: references stay references, secrets are masked."""
    origin: str
    """`line 12`, or `default`."""


def show(path: str | Path) -> list[Row]:
    """The rows of a file, by section as in the documentation, what the file sets before the defaults.

    Works for a file with faults in it; ConfigurationError only if it cannot be read at all.
    """
    path = Path(path)
    document = read(path)
    if not document.readable:
        raise ConfigurationError(document.faults)
    # Without the environment, since values are shown as written.
    settings = bind(document.entries, {}, document.file, path.absolute().parent)
    rows: list[Row] = []
    for section in dict.fromkeys(field.section for field in FIELDS.fields):
        rows += [_row(setting) for setting in settings.by_key.values() if setting.row.section == section]
        rows += _defaults(settings, section)
    return rows


def _row(setting: Setting) -> Row:
    entry = setting.entry
    secret = setting.row.masked or is_secret_key(entry.key)
    shown = MASK if secret and not is_reference(entry.value) else hide_credentials(entry.value)
    return Row(entry.key, shown, f"line {entry.line}")


def _defaults(settings: Settings, section: str) -> list[Row]:
    rows = []
    for field in FIELDS.in_section(section):
        if field.open or (field.default is None and not field.default_note):
            continue
        names = settings.names(section) if "NAME" in field.key else [""]
        rows += [_default(field, name) for name in names if not settings.is_set(field.key, name)]
    return rows


def _default(field: Field, name: str) -> Row:
    note = field.default_note.replace("NAME", name) if field.default is None else ""
    return Row(field.key.replace("NAME", name), field.default or f"({note})".replace("`", ""), "default")
