"""Values that come from elsewhere, `${env:NAME}` and `${file:PATH}`, and the masking of what must not be shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "MASK",
    "Resolved",
    "Secret",
    "UnresolvedError",
    "has_reference",
    "hide_credentials",
    "is_reference",
    "is_secret_key",
    "resolve",
]

MASK = "******"
"""What stands in place of a secret."""

_SECRET_KEY = re.compile(
    r"pass(word|wd|phrase)|secret|jaas|token(?!\.endpoint)|credential|private|access[._-]?key|api[._-]?key"
    r"|ssl\.(keystore\.key|key\.pem)$",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<scheme>env|file):(?P<name>[^}]*)\}|\$\{")
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+(?=@)")


class Secret(str):
    """Text that prints as itself and has a masked `repr`, so that no dataclass or mapping shows it by accident."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(MASK)


@dataclass(frozen=True, slots=True)
class Resolved:
    """A value with its references replaced."""

    text: str
    origins: tuple[int, ...]
    """For each character and the end: its offset in the text with references; all of a reference's count as its `$`."""


class UnresolvedError(Exception):
    """A reference leads nowhere."""

    def __init__(self, message: str, hint: str, offset: int) -> None:
        super().__init__(message)
        self.hint = hint
        self.offset = offset


def is_secret_key(key: str) -> bool:
    """Whether the name alone says that the value is a secret."""
    return _SECRET_KEY.search(key) is not None


def has_reference(value: str) -> bool:
    """Whether part of the value comes from the environment or a file."""
    return any(match["scheme"] for match in _REFERENCE.finditer(value))


def is_reference(value: str) -> bool:
    """Whether the whole value comes from elsewhere, so that it tells nothing as written."""
    match = _REFERENCE.fullmatch(value)
    return match is not None and match["scheme"] is not None


def hide_credentials(text: str) -> str:
    """The text with what stands before the `@` of a URL masked."""
    return _CREDENTIALS.sub(MASK, text)


def resolve(value: str, env: Mapping[str, str], base: Path, *, strict: bool = True) -> Resolved:
    """The value with `${env:NAME}` and `${file:PATH}` replaced, and `$${` read as a plain `${`.

    A relative path starts at `base`; a file is UTF-8 and its last line end does not count. `strict` refuses a `${`
    of any other kind, which may mean something only to the program the value is passed on to.
    UnresolvedError names what is missing, never what was found.
    """
    text: list[str] = []
    origins: list[int] = []
    end = 0
    for match in _REFERENCE.finditer(value):
        text.append(value[end : match.start()])
        origins.extend(range(end, match.start()))
        found = _replacement(match, env, base, strict=strict)
        text.append(found)
        origins.extend([match.start()] * len(found))
        end = match.end()
    text.append(value[end:])
    origins.extend(range(end, len(value) + 1))
    return Resolved("".join(text), tuple(origins))


def _replacement(match: re.Match[str], env: Mapping[str, str], base: Path, *, strict: bool) -> str:
    scheme, name = match["scheme"], match["name"]
    if scheme == "env":
        if name not in env:
            raise UnresolvedError(f"the environment has no variable '{name}'", "set it before the start", match.start())
        return env[name]
    if scheme == "file":
        return _content(base / name, name, match.start())
    if match[0] == "${" and strict:
        raise UnresolvedError(
            "'${' starts a reference of no known kind",
            "write ${env:NAME} or ${file:PATH}, or $${ for itself",
            match.start(),
        )
    return "${"


def _content(path: Path, name: str, offset: int) -> str:
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UnresolvedError(f"the file '{name}' cannot be read: {reason}", f"looked for {path}", offset) from error
    except UnicodeDecodeError as error:
        raise UnresolvedError(f"the file '{name}' is not UTF-8 text", "", offset) from error
    except ValueError as error:
        raise UnresolvedError("a file's name cannot hold a NUL character", "", offset) from error
    for end in ("\r\n", "\n"):
        if content.endswith(end):
            return content.removesuffix(end)
    return content
