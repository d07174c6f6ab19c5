"""Facts about classes in jars, read without a JVM: superclasses, interfaces and setters.

Only what a check of a configuration needs is read (Java Virtual Machine Specification, chapter 4).
"""

from __future__ import annotations

import struct
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["APIS", "ClassFile", "Classes"]

APIS = ("javax.jms", "jakarta.jms")
_MAGIC = 0xCAFEBABE
# Sizes behind the tag of an entry of the constant pool; a text (1) has its own length, long and double take two places.
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
_PUBLIC = 1


class ClassFile(NamedTuple):
    """A class, as its file describes it."""

    name: str
    parents: tuple[str, ...]
    """The superclass, and the interfaces."""
    setters: tuple[tuple[str, str], ...]
    """Public methods `setX` of one argument: the name of the property, and the descriptor of its type (`I`)."""


def parse(data: bytes) -> ClassFile:
    """Reads a class file; ValueError if the bytes are none."""
    try:
        return _parsed(data)
    except (struct.error, IndexError, KeyError) as error:
        raise ValueError("no class file") from error


def _parsed(data: bytes) -> ClassFile:
    magic, _, count = struct.unpack_from(">IIH", data)
    if magic != _MAGIC:
        raise ValueError("no class file")
    texts: dict[int, str] = {}
    classes: dict[int, int] = {}
    at, number = 10, 1
    while number < count:
        tag = data[at]
        if tag == 1:
            length = struct.unpack_from(">H", data, at + 1)[0]
            texts[number] = data[at + 3 : at + 3 + length].decode("utf-8", "replace")
            at += 3 + length
        else:
            if tag == 7:
                classes[number] = struct.unpack_from(">H", data, at + 1)[0]
            at += 1 + _SIZES[tag]
        number += 2 if tag in (5, 6) else 1

    def named(index: int) -> str:
        return texts[classes[index]].replace("/", ".")

    _, this, above, interfaces = struct.unpack_from(">HHHH", data, at)
    indexes = struct.unpack_from(f">{interfaces}H", data, at + 8)
    at += 8 + 2 * interfaces
    _, at = _members(data, at, texts)
    methods, _ = _members(data, at, texts)
    parents = ((named(above),) if above else ()) + tuple(named(index) for index in indexes)
    return ClassFile(named(this), parents, tuple(_setters(methods)))


def _members(data: bytes, at: int, texts: dict[int, str]) -> tuple[list[tuple[int, str, str]], int]:
    """Returns access, name and descriptor of each field or method, and the place behind them."""
    found = []
    (count,) = struct.unpack_from(">H", data, at)
    at += 2
    for _ in range(count):
        access, name, descriptor, attributes = struct.unpack_from(">HHHH", data, at)
        at += 8
        for _ in range(attributes):
            at += 6 + struct.unpack_from(">I", data, at + 2)[0]
        found.append((access, texts[name], texts[descriptor]))
    return found, at


def _setters(methods: Iterable[tuple[int, str, str]]) -> Iterator[tuple[str, str]]:
    for access, name, descriptor in methods:
        kind = descriptor[1 : descriptor.index(")")] if ")" in descriptor else ""
        alone = kind and (len(kind) == 1 or (kind[0] in "L[" and kind.find(";") in (-1, len(kind) - 1)))
        if access & _PUBLIC and name.startswith("set") and len(name) > 3 and alone:
            yield name[3].lower() + name[4:], kind


class Classes:
    """The classes of a class path."""

    def __init__(self, path: Iterable[Path]) -> None:
        """`path` has jars and folders, which exist."""
        self._path = tuple(path)

    def holders(self, name: str) -> list[Path]:
        """Returns the jars and folders that have a class."""
        entry = name.replace(".", "/") + ".class"
        return [each for each in self._path if _has(each, entry)]

    def find(self, name: str, holder: Path | None = None) -> ClassFile | None:
        """Returns a class, that of a jar if one is given; None if it is in none, or cannot be read."""
        entry = name.replace(".", "/") + ".class"
        for each in [holder] if holder else self.holders(name):
            try:
                return parse(_content(each, entry))
            except (OSError, ValueError, KeyError, zipfile.BadZipFile):
                continue
        return None

    def above(self, found: ClassFile) -> Iterator[ClassFile | str]:
        """Yields a class, its superclasses and interfaces; of those that are in no jar the names."""
        waiting, seen = [found], {found.name}
        while waiting:
            one = waiting.pop()
            yield one
            for name in one.parents:
                if name in seen:
                    continue
                seen.add(name)
                if (parent := self.find(name)) is not None and not name.startswith(APIS):
                    waiting.append(parent)
                else:
                    yield name

    def ending(self, suffix: str) -> list[str]:
        """Returns the names of classes that end alike, without nested classes."""
        names = (name for each in self._path for name in _names(each))
        return sorted(
            name.removesuffix(".class").replace("/", ".")
            for name in names
            if name.endswith(f"{suffix}.class") and "$" not in name
        )


def _has(holder: Path, entry: str) -> bool:
    return (holder / entry).is_file() if holder.is_dir() else entry in _names(holder)


def _names(holder: Path) -> frozenset[str]:
    if holder.is_dir():
        return frozenset(each.relative_to(holder).as_posix() for each in holder.rglob("*.class"))
    return _jar_names(holder, holder.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _jar_names(jar: Path, _: int) -> frozenset[str]:
    try:
        with zipfile.ZipFile(jar) as archive:
            return frozenset(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return frozenset()


def _content(holder: Path, entry: str) -> bytes:
    if holder.is_dir():
        return (holder / entry).read_bytes()
    with zipfile.ZipFile(holder) as archive:
        return archive.read(entry)
