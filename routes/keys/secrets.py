"""References to values elsewhere, `${env:NAME}` and `${file:PATH}`, and the masking of secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "LONG_SECRET",
    "MASK",
    "Resolved",
    "Secret",
    "UnresolvedError",
    "contents",
    "has_reference",
    "hide_credentials",
    "is_reference",
    "is_secret_key",
    "java_secrets",
    "mask",
    "resolve",
    "variables",
]

MASK = "******"
"""Text shown in place of a secret."""
LONG_SECRET = 8
"""Number of characters from which on a secret is masked wherever it stands in a text; see `mask`."""

_LEAST = 4

_SECRET_KEY = re.compile(
    r"pass(word|wd|phrase)|secret|jaas|token(?!\.endpoint)|credential|private|(access|account|api)[._-]?key"
    r"|ssl\.(keystore\.key|key\.pem)$",
    re.IGNORECASE,
)
_SECRET_WORDS = ("password", "passphrase", "secret", "token", "credential", "credentials", "private")
_CORRECT_WORDS = (*_SECRET_WORDS, "secure")
"""Words that are spelt correctly: `_SECRET_KEY` decides whether they name a secret."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ALIKE = 0.8
"""Similarity (difflib's ratio) above which a word counts as one of the secret words, mistyped."""
_JAVA_PROPERTY = re.compile(r"-D(?P<name>[\w.-]+)=(?P<value>\"[^\"]*\"|'[^']*'|\S*)")
_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<scheme>env|file):(?P<name>[^}]*)\}|\$\{")
_MOST_BYTES = 1024 * 1024
"""Greatest size of a file that a value is read from."""
_NO_FILES: Mapping[str, str] = MappingProxyType({})
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
    """Offset in the text with references of each character, and of the end; all characters of a reference's value have
    the offset of its `$`."""


class UnresolvedError(Exception):
    """Error for a reference that leads nowhere."""

    def __init__(self, message: str, hint: str, offset: int) -> None:
        super().__init__(message)
        self.hint = hint
        self.offset = offset


@lru_cache(4096)
def is_secret_key(key: str) -> bool:
    """Returns True if the name alone says that the value is a secret, also if it is mistyped (`pasword`)."""
    return _SECRET_KEY.search(key) is not None or any(_is_mistyped(word.lower()) for word in _WORD.findall(key))


@lru_cache(4096)
def _is_mistyped(word: str) -> bool:
    return word not in _CORRECT_WORDS and bool(get_close_matches(word, _SECRET_WORDS, n=1, cutoff=_ALIKE + 0.01))


def java_secrets(text: str) -> Iterator[str]:
    """Yields the values of those Java options `-DNAME=VALUE` whose NAME says that they are secrets."""
    for match in _JAVA_PROPERTY.finditer(text):
        if is_secret_key(match["name"]):
            yield match["value"].strip("\"'")


def mask(text: str, secrets: Iterable[str]) -> str:
    """Returns the text with the secrets masked, the longest first, so that one which contains another leaves no rest.

    A secret of four to seven characters is masked where it stands as a word, a shorter one is not: it would make other
    words unreadable, and the gaps would reveal it.
    """
    for secret in sorted({each for each in secrets if len(each) >= _LEAST}, key=len, reverse=True):
        if len(secret) >= LONG_SECRET:
            text = text.replace(secret, MASK)
        elif secret in text:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", MASK, text)
    return text


def has_reference(value: str) -> bool:
    """Returns True if part of the value comes from the environment or a file."""
    return any(match["scheme"] for match in _REFERENCE.finditer(value))


def variables(value: str) -> Iterator[str]:
    """Yields the environment variables that a value refers to."""
    for match in _REFERENCE.finditer(value):
        if match["scheme"] == "env":
            yield match["name"]


def is_reference(value: str) -> bool:
    """Returns True if the value is a single reference, so that its text reveals nothing."""
    match = _REFERENCE.fullmatch(value)
    return match is not None and match["scheme"] is not None


def hide_credentials(text: str) -> str:
    """Returns the text with the logins of URLs (the part before the `@`) and the secrets among Java options masked."""
    hidden = _JAVA_PROPERTY.sub(
        lambda match: f"-D{match['name']}={MASK}" if is_secret_key(match["name"]) else match[0], text
    )
    return _CREDENTIALS.sub(MASK, hidden)


def contents(values: Iterable[str], base: Path) -> dict[str, str]:
    """Returns the contents of the files that values refer to, by PATH of `${file:PATH}`, without unreadable ones."""
    texts = {}
    for value in values:
        for match in _REFERENCE.finditer(value):
            if match["scheme"] == "file":
                with suppress(UnresolvedError):
                    texts[match["name"]] = _content(base / match["name"], match["name"], match.start())
    return texts


def resolve(
    value: str,
    env: Mapping[str, str],
    base: Path,
    files: Mapping[str, str] = _NO_FILES,
    *,
    strict: bool = True,
) -> Resolved:
    """Returns the value with `${env:NAME}` and `${file:PATH}` replaced, and `$${` read as a plain `${`.

    Args:
        value: the text with references.
        env: the environment variables.
        base: folder at which relative paths start.
        files: contents by PATH, which are not read from the disk.
        strict: refuse a `${` of any other kind, which may mean something only to the program that the value is passed
            on to.

    A file is UTF-8, and its last line end does not count.

    Raises:
        UnresolvedError: a reference leads nowhere; it names the missing thing, never a value that was found.
    """
    text: list[str] = []
    origins: list[int] = []
    end = 0
    for match in _REFERENCE.finditer(value):
        text.append(value[end : match.start()])
        origins.extend(range(end, match.start()))
        replacement = _replacement(match, env, base, files, strict=strict)
        text.append(replacement)
        origins.extend([match.start()] * len(replacement))
        end = match.end()
    text.append(value[end:])
    origins.extend(range(end, len(value) + 1))
    return Resolved("".join(text), tuple(origins))


def _replacement(
    match: re.Match[str], env: Mapping[str, str], base: Path, files: Mapping[str, str], *, strict: bool
) -> str:
    scheme, name = match["scheme"], match["name"]
    if scheme == "env":
        if name not in env:
            raise UnresolvedError(f"the environment has no variable '{name}'", "set it before the start", match.start())
        return env[name]
    if scheme == "file":
        return files[name] if name in files else _content(base / name, name, match.start())
    if match[0] == "${" and strict:
        raise UnresolvedError(
            "'${' starts a reference of no known kind",
            "write ${env:NAME} or ${file:PATH}, or $${ for itself",
            match.start(),
        )
    return "${"


def _content(path: Path, name: str, offset: int) -> str:
    try:
        with path.open("rb") as file:
            read = file.read(_MOST_BYTES + 1)
        content = read.decode("utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UnresolvedError(f"the file '{name}' cannot be read: {reason}", f"looked for {path}", offset) from error
    except UnicodeDecodeError as error:
        raise UnresolvedError(f"the file '{name}' is not UTF-8 text", "", offset) from error
    except ValueError as error:
        raise UnresolvedError("a file's name cannot hold a NUL character", "", offset) from error
    if len(read) > _MOST_BYTES:
        raise UnresolvedError(f"the file '{name}' has more than {_MOST_BYTES >> 20} MiB", "", offset)
    for end in ("\r\n", "\n"):
        if content.endswith(end):
            return content.removesuffix(end)
    return content
