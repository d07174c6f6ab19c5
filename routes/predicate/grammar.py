"""Reader of the predicates' grammar: makes the parser from `grammar.lark`, and keeps its tables beside the bytecode.

Making the tables takes a tenth of a second of each process, reading them a hundredth.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import io
import os
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
    if saved := _read(tables):
        return Lark.load(io.BytesIO(saved))
    parser = Lark(text, parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=True)
    if not sys.dont_write_bytecode:
        _write(tables, parser)
    return parser


def _tables_file(text: str) -> Path:
    """Path of the tables, which changes with the grammar, Lark and Python."""
    version = hashlib.sha256(f"{lark.__version__}\n{text}".encode()).hexdigest()[:16]
    return Path(importlib.util.cache_from_source(str(_GRAMMAR))).with_suffix(f".{version}.tables")


def _read(file: Path) -> bytes | None:
    """The tables in a file; None if there are none, or the file is damaged."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    digest, tables = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return tables if digest == hashlib.sha256(tables).digest() else None


def _write(file: Path, parser: Lark) -> None:
    """Writes the tables, whole or not at all; where the folder is not writable, each process makes its own."""
    buffer = io.BytesIO()
    parser.save(buffer)
    tables = buffer.getvalue()
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, fresh = tempfile.mkstemp(dir=file.parent, prefix=file.name)
        with os.fdopen(descriptor, "wb") as output:
            output.write(hashlib.sha256(tables).digest() + tables)
        Path(fresh).replace(file)
