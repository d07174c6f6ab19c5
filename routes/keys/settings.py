"""The settings that a file makes of the field table: the values of its keys, and the faults found in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from routes.errors import Fault
from routes.keys.secrets import MASK, is_secret_key, mask, variables
from routes.keys.table import keys_of, named_of, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from routes.keys.entry import Entry
    from routes.keys.table import Field, Key, KeyTable

__all__ = ["Setting", "Settings"]


@dataclass(frozen=True, slots=True)
class Setting:
    """A key that is set, with its parsed value."""

    row: Field
    name: str
    entry: Entry
    value: Any
    """Value as the row's kind parses it; None if there is a fault in it."""
    text: str = field(default="", repr=False)
    """The parsed text, with references replaced."""
    rest: str = ""
    """The text in place of the `*` of a row with NAME."""


@dataclass(slots=True)
class Settings:
    """All keys that a file sets, and the faults found on the way."""

    file: str
    base: Path
    """Folder from which relative paths start."""
    table: KeyTable
    """The rows of all keys."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Contents for `${file:PATH}`, by PATH, used in place of the disk."""
    by_key: dict[tuple[str, str], Setting] = field(default_factory=dict)
    """Settings by key and NAME, in the order in which keys first appear. The key is that of the row, but with the text
    in place of `*` if the row has a NAME, too."""
    faults: list[Fault] = field(default_factory=list)
    _open: dict[tuple[str, str], list[Setting]] = field(default_factory=dict, repr=False)
    """Settings under rows that end in `*`: by key and NAME, and all of a key by the empty NAME."""

    def add(self, key: str, setting: Setting) -> None:
        """Adds a setting under a key as in `by_key`, which has not been set before."""
        self.by_key[key, setting.name] = setting
        if setting.row.open:
            for name in {"", setting.name}:
                self._open.setdefault((setting.row.key, name), []).append(setting)

    def get(self, key: str, name: str = "") -> Any:
        """Returns the value of a key, or the default if it is not set, or None without a default."""
        if setting := self.by_key.get((key, name)):
            return setting.value
        row = self.table.row(key)
        return None if row.default is None else row.kind.parse(row.default)

    def effective(self, key: str, name: str = "") -> Any:
        """Returns the value in force: the one set, else the default, else the inherited one; None without any."""
        value, inherited = self.get(key, name), self.table.row(key).inherited
        return inherited(self, name) if value is None and inherited else value

    def entry(self, key: str, name: str = "") -> Entry | None:
        """Returns the entry that sets a key; None if no entry does."""
        setting = self.by_key.get((key, name))
        return setting.entry if setting else None

    def is_set(self, key: str, name: str = "") -> bool:
        """Returns True if the file sets a key, even to something faulty."""
        return (key, name) in self.by_key

    def has_file(self, path: str | Path) -> bool:
        """Returns True if there is a file of this path, relative to the configuration."""
        try:
            return (self.base / path).is_file()
        except OSError:  # The name is too long, or a folder may not be entered.
            return False

    def names(self, section: str) -> list[str]:
        """Returns the NAMEs of a section, in the order in which they first appear in the file."""
        named = (setting for setting in self.by_key.values() if setting.row.section == section and setting.name)
        return list(dict.fromkeys(setting.name for setting in named))

    def first_entry(self, section: str, name: str) -> Entry:
        """Returns the first entry about a NAME."""
        entries = (s.entry for s in self.by_key.values() if s.row.section == section and s.name == name)
        return min(entries, key=lambda entry: entry.key_spot)

    def open(self, key: str, name: str = "") -> list[Setting]:
        """Returns the settings under a row that ends in `*`; `name` is the NAME in the row, if it has one."""
        return list(self._open.get((key, name), ()))

    def of_row(self, row: Field, name: str) -> list[Setting]:
        """Returns the settings that a row with NAME stands for: one, none, or under a row that ends in `*` any."""
        if row.open:
            return self.open(row.key, name)
        setting = self.by_key.get((row.key, name))
        return [] if setting is None else [setting]

    def made(self, kind: type, prefix: str = "", name: str = "") -> dict[str, Any]:
        """Returns the arguments of a dataclass whose fields declare keys behind a prefix, as `source.NAME.`.

        To be called only when lint found no error.
        """
        keys, parts, lists = keys_of(kind), parts_of(kind), named_of(kind)
        return {
            **{attribute: self._made(declared, prefix, name) for attribute, declared in keys.items()},
            **{attribute: part(**self.made(part, prefix + own, name)) for attribute, (part, own) in parts.items()},
            **{attribute: self._named(*declared) for attribute, declared in lists.items()},
        }

    def _named(self, section: str, kind: type) -> tuple[Any, ...]:
        return tuple(kind(name=name, **self.made(kind, f"{section}.NAME.", name)) for name in self.names(section))

    def _made(self, declared: Key, prefix: str, name: str) -> Any:
        row = prefix + declared.name
        if row.endswith("*"):
            value: Any = MappingProxyType({each.rest or each.name: each.value for each in self.open(row, name)})
        else:
            value = self.effective(row, name)
        if isinstance(value, Path):
            value = self.base / value
        return declared.made(value, self, name) if declared.made else value

    def secret_variables(self) -> frozenset[str]:
        """Returns the names of the environment's variables that hold secrets."""
        return frozenset(
            variable
            for setting in self.by_key.values()
            # A header that a route sets may have any name.
            if setting.row.masked or (setting.row.section != "routes" and is_secret_key(setting.entry.key))
            for variable in variables(setting.entry.value)
        )

    def hidden(self, faults: Iterable[Fault]) -> list[Fault]:
        """Returns faults found before binding, without the line of those whose value holds a login."""
        by_key = {setting.entry.key: setting for setting in self.by_key.values()}

        def holds_login(fault: Fault) -> bool:
            setting = by_key.get(fault.key)
            return setting is not None and setting.row.kind.reveals(setting.entry.value)

        return [replace(fault, excerpt="") if holds_login(fault) else fault for fault in faults]

    def masked_faults(self) -> list[Fault]:
        """Returns the faults, without any secret that a message or hint may quote."""
        secrets = [(s.entry.key, s.text) for s in self.by_key.values() if s.entry.secret and s.text]
        return [_masked(fault, secrets) for fault in self.faults]

    def fault(self, key: str, name: str, message: str, hint: str = "", offset: int = 0) -> None:
        """Adds a fault at a place in the value of a key that is set, or without a place if it is not set."""
        entry = self.entry(key, name)
        self.faults.append(entry.fault(message, hint, offset) if entry else Fault(message, hint, self.file, key=key))


def _masked(fault: Fault, secrets: list[tuple[str, str]]) -> Fault:
    """Returns the fault without the secrets; a secret of the fault's own key is masked at any length."""
    message, hint = fault.message, fault.hint
    for key, secret in secrets:
        if key == fault.key:
            message, hint = message.replace(secret, MASK), hint.replace(secret, MASK)
    every = [secret for _, secret in secrets]
    return replace(fault, message=mask(message, every), hint=mask(hint, every))
