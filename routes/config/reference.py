"""Writes docs/configuration.md from the field table: `python -m routes.config > docs/configuration.md` renews it."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

from routes.config.fields import FIELDS, sections
from routes.keys.pattern import DEFAULT_KEY_PATTERN
from routes.section_registry import registered_sections
from routes.systems import all_systems

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from routes.keys.table import Field

__all__ = ["reference"]

_WIDTH = 120

_INTRODUCTION = """\
# Configuration

<!-- Made from the field table in routes/config/fields.py by `python -m routes.config`; changes here are lost. -->

The bridge is configured by one file, `jms-bridge.properties`. `jms-bridge validate` checks it without starting anything
and names all faults at once, each with its line and column.
"""

_FILE = """\
## The file

- A Java properties file in UTF-8: `key=value`, `key: value` or `key value`; `#` and `!` start a comment; a backslash at
  the end of a line continues it. A backslash elsewhere escapes the next character, so a real one is written `\\\\\\\\`.
- Read from the top down: a key that comes again overrides the one before, with a warning.
- Relative paths start at the directory of the file.
- `${env:NAME}` is replaced by an environment variable, `${file:PATH}` by the content of a file without its last line
  end. Such values, and those of keys that sound like a secret, are masked wherever configuration is shown. `$${` is a
  plain `${`.
- Durations have a unit: `500ms`, `30s`, `5m`, `12h`, `7d`. Sizes may have one: `512KiB`, `8MiB`; else they are bytes.
"""

_KEYS_OF_RECORDS = """\
### Keys of records

A key taken from a header has to match `routing.key-pattern` as a whole. The default takes letters and digits of any
script, at least one of them, and the punctuation of real correlation ids, `- _ . : @ # + / = {{ }}`: UUIDs,
`ID:host-1234-1:1`, `{{order}}/7`, base64. Blanks and other punctuation are refused. Written out it is

```
{pattern}
```

A pattern of your own is read by Java while routing and by Python in `jms-bridge explain`; what the two would read
differently (`\\w`, flags, sets inside sets) is refused. The message id, which is the key of routes without `conv.key`,
is not checked.
"""

_RESERVED = """\
### What the bridge sets itself

These can only have the value given here, for the reason given here.

| setting | value | reason |
|---|---|---|
"""


def reference() -> str:
    """Returns the whole page, in Markdown."""
    parts = [_INTRODUCTION, _contents(), _FILE.replace("\\\\\\\\", "\\\\")]
    for section, about in sections().items():
        common = [row for row in FIELDS.in_section(section) if not row.systems]
        parts += [f"## {section}\n", _wrapped(about), _table(common)]
        for system, rows in _of_systems(section):
            page = f"connectors/{system}.md"
            parts.append(f"### {section.capitalize()}s of type `{system}`\n")
            parts.append(f"In addition to [the keys of all {section}s](#{section}). See also [{page}]({page}).\n")
            parts.append(_table(rows))
        if section == "routing":
            parts.append(_KEYS_OF_RECORDS.format(pattern=DEFAULT_KEY_PATTERN))
        if described := registered_sections().get(section):
            parts += [*described.notes, *_reserved(described.reserved)]
    return "\n".join(parts)


def _contents() -> str:
    links = []
    for section in sections():
        types = [f"[{system}](#{section}s-of-type-{system})" for system, _ in _of_systems(section)]
        links.append(f"[{section}](#{section})" + (f" (of type {', '.join(types)})" if types else ""))
    return _wrapped(f"Sections: {', '.join(links)}.")


def _of_systems(section: str) -> list[tuple[str, list[Field]]]:
    """Returns the types of sources or sinks that have keys of their own in a section, each with these keys."""
    fields = FIELDS.in_section(section)
    rows = [(system.name, [row for row in fields if system in row.systems]) for system in all_systems()]
    return [(system, own) for system, own in rows if own]


def _table(rows: Sequence[Field]) -> str:
    lines = ["| key | value | default | what it does | example |", "|---|---|---|---|---|"]
    for row in rows:
        keys = "<br>".join(f"`{key}`" for key in (row.key, *row.aliases))
        lines.append(f"| {keys} | {row.kind.name} | {_default(row)} | {row.doc} | {_example(row)} |")
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> str:
    return fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"


def _default(field: Field) -> str:
    if field.required:
        return "required"
    if field.default_note:
        return field.default_note
    return f"`{field.default}`" if field.default is not None else ""


def _example(field: Field) -> str:
    return f"`{field.example}`" if field.example else ""


def _reserved(rules: Mapping[str, tuple[str | None, str]]) -> Iterator[str]:
    rows = (f"| `{key}` | {f'`{value}`' if value else ''} | {reason} |\n" for key, (value, reason) in rules.items())
    if rules:
        yield _RESERVED + "".join(rows)
