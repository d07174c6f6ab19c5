"""A configuration as rows for display: every key, its value, and where that comes from. Secrets stay masked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from routes.config.binding import bind
from routes.config.fields import FIELDS
from routes.config.reader import read
from routes.errors import ConfigurationError
from routes.keys.secrets import MASK, hide_credentials, is_reference, is_secret_key

if TYPE_CHECKING:
    from routes.keys.settings import Setting, Settings
    from routes.keys.table import Field

__all__ = ["SettingRow", "rows", "show", "shown"]


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A key with its value and origin."""

    key: str
    value: str
    """Value as written in the file: references stay references, secrets are masked."""
    origin: str
    """`line 12`, or `default`."""


def show(path: str | Path) -> list[SettingRow]:
    """Returns the rows of a file, by section as in the documentation, keys that the file sets before defaults.

    Works for a file with faults in it.

    Raises:
        ConfigurationError: the file cannot be read at all.
    """
    path = Path(path)
    document = read(path)
    if not document.readable:
        raise ConfigurationError(document.faults)
    # Without the environment, since values are shown as written.
    return rows(bind(document.entries, {}, document.file, path.absolute().parent))


def rows(settings: Settings) -> list[SettingRow]:
    """Returns the rows of settings that were read, ordered as by `show`."""
    shown: list[SettingRow] = []
    for section in dict.fromkeys(field.section for field in FIELDS.fields):
        shown += [_row(setting) for setting in settings.by_key.values() if setting.row.section == section]
        shown += _defaults(settings, section)
    return shown


def shown(setting: Setting) -> str:
    """Returns a value as written in the file, masked if it is a secret or holds one."""
    entry = setting.entry
    if is_reference(entry.value):
        return entry.value
    secret = setting.row.masked or is_secret_key(entry.key) or setting.row.kind.reveals(entry.value)
    return MASK if secret else hide_credentials(entry.value)


def _row(setting: Setting) -> SettingRow:
    return SettingRow(setting.entry.key, shown(setting), f"line {setting.entry.line}")


def _defaults(settings: Settings, section: str) -> list[SettingRow]:
    rows = []
    for field in FIELDS.in_section(section):
        if field.open or (field.default is None and not field.default_note):
            continue
        names = settings.names(section) if "NAME" in field.key else [""]
        rows += [_default(field, name) for name in names if not settings.is_set(field.key, name)]
    return rows


def _default(field: Field, name: str) -> SettingRow:
    note = field.default_note.replace("NAME", name) if field.default is None else ""
    return SettingRow(field.key.replace("NAME", name), field.default or f"({note})".replace("`", ""), "default")
