"""Reader of the predicates' grammar: makes the parser from `grammar.lark`, and keeps its tables in the user's cache.

Making the tables takes a tenth of a second of each process, reading them a hundredth. They are not kept beside the
bytecode, where the removal of the package would leave them behind.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import lark
from lark import Lark

__all__ = ["grammar"]

_GRAMMAR = Path(__file__).with_name("grammar.lark")
_DIGEST_BYTES = hashlib.sha256().digest_size


@functools.cache
def grammar() -> Lark:
    """The parser of predicates; from the tables of an earlier process if there are any that fit."""
    text = _GRAMMAR.read_text(encoding="utf-8")
    tables = _tables_file(text)
    if tables is not None and (saved := _read(tables)):
        return Lark.load(io.BytesIO(saved))
    parser = Lark(text, parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=True)
    if tables is not None and not sys.dont_write_bytecode:
        _write(tables, parser)
    return parser


def _tables_file(text: str) -> Path | None:
    """Path of the tables, which changes with the grammar, Lark and Python; None if the user has no cache folder."""
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None  # a user without a home
    parts = (lark.__version__, sys.implementation.cache_tag, text)
    version = hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]
    return cache / "jms-bridge" / f"grammar.{version}.tables" if cache.is_absolute() else None


def _read(file: Path) -> bytes | None:
    """The tables in a file; None if there are none, the file is damaged, or another user could have written it.

    Lark reads tables with `pickle`, which runs code in a hostile file.
    """
    try:
        if not (_is_private(file.parent) and _is_private(file)):
            return None
        content = file.read_bytes()
    except OSError:
        return None
    digest, tables = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return tables if digest == hashlib.sha256(tables).digest() else None


def _is_private(path: Path) -> bool:
    """True for a file or folder of this user which is not a link, and to which nobody else may write."""
    status = path.lstat()
    is_link, others_may_write = stat.S_ISLNK(status.st_mode), status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return status.st_uid == os.geteuid() and not is_link and not others_may_write


def _write(file: Path, parser: Lark) -> None:
    """Writes the tables, whole or not at all; where the folder is not writable, each process makes its own."""
    buffer = io.BytesIO()
    parser.save(buffer)
    tables = buffer.getvalue()
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, fresh = tempfile.mkstemp(dir=file.parent, prefix=file.name)
        with os.fdopen(descriptor, "wb") as output:
            output.write(hashlib.sha256(tables).digest() + tables)
        Path(fresh).replace(file)
