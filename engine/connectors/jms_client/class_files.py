"""Facts about classes in jars, read without a JVM: superclasses, interfaces and setters.

Only what a check of a configuration needs is read (Java Virtual Machine Specification, chapter 4).
"""

from __future__ import annotations

import struct
import zipfile
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, NamedTuple, Self

from engine.connectors.jms_client.jar import Jar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["APIS", "ClassFile", "Classes"]

APIS = ("javax.jms", "jakarta.jms")
_MAGIC = 0xCAFEBABE
# Sizes behind the tag of an entry of the constant pool; a text (1) has its own length, long and double take two places.
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
_PUBLIC = 1
_BY_NAME = ("setProperty", "(Ljava/lang/String;Ljava/lang/String;)")


class ClassFile(NamedTuple):
    """A class, as its file describes it."""

    name: str
    parents: tuple[str, ...]
    """The superclass, and the interfaces."""
    setters: tuple[tuple[str, str], ...]
    """Public methods `setX` of one argument: the name of the property, and the descriptor of its type (`I`)."""
    takes_names: bool = False
    """True if there is a public method `setProperty` of two texts, a name and its value."""


def parse(data: bytes) -> ClassFile:
    """Reads a class file; ValueError if the bytes have another form."""
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
    offset, number = 10, 1
    while number < count:
        tag = data[offset]
        if tag == 1:
            length = struct.unpack_from(">H", data, offset + 1)[0]
            texts[number] = data[offset + 3 : offset + 3 + length].decode("utf-8", "replace")
            offset += 3 + length
        else:
            if tag == 7:
                classes[number] = struct.unpack_from(">H", data, offset + 1)[0]
            offset += 1 + _SIZES[tag]
        number += 2 if tag in (5, 6) else 1

    def named(index: int) -> str:
        return texts[classes[index]].replace("/", ".")

    _, this, above, interfaces = struct.unpack_from(">HHHH", data, offset)
    indexes = struct.unpack_from(f">{interfaces}H", data, offset + 8)
    offset += 8 + 2 * interfaces
    _, offset = _members(data, offset, texts)
    methods, _ = _members(data, offset, texts)
    parents = ((named(above),) if above else ()) + tuple(named(index) for index in indexes)
    takes_names = any(
        access & _PUBLIC and name == _BY_NAME[0] and kind.startswith(_BY_NAME[1]) for access, name, kind in methods
    )
    return ClassFile(named(this), parents, tuple(_setters(methods)), takes_names)


def _members(data: bytes, offset: int, texts: dict[int, str]) -> tuple[list[tuple[int, str, str]], int]:
    """Returns access, name and descriptor of each field or method, and the place behind them."""
    members = []
    (count,) = struct.unpack_from(">H", data, offset)
    offset += 2
    for _ in range(count):
        access, name, descriptor, attributes = struct.unpack_from(">HHHH", data, offset)
        offset += 8
        for _ in range(attributes):
            offset += 6 + struct.unpack_from(">I", data, offset + 2)[0]
        members.append((access, texts[name], texts[descriptor]))
    return members, offset


def _setters(methods: Iterable[tuple[int, str, str]]) -> Iterator[tuple[str, str]]:
    for access, name, descriptor in methods:
        kind = descriptor[1 : descriptor.index(")")] if ")" in descriptor else ""
        alone = kind and (len(kind) == 1 or (kind[0] in "L[" and kind.find(";") in (-1, len(kind) - 1)))
        if access & _PUBLIC and name.startswith("set") and len(name) > 3 and alone:
            yield _property(name[3:]), kind


def _property(name: str) -> str:
    """Returns the name of a bean property by that of its setter: `hostName`, but `SSLCipherSuite`."""
    return name if name[:2].isupper() and len(name) > 1 else name[0].lower() + name[1:]


class Classes:
    """The classes of a class path; a context that keeps its jars open."""

    def __init__(self, path: Iterable[Path]) -> None:
        """`path` has jars and folders, which exist."""
        self._path = tuple(path)
        self._open = ExitStack()
        self._jars: dict[Path, Jar | None] = {}
        self._holders: dict[str, list[Path]] = {}
        self._found: dict[tuple[Path, str], ClassFile | None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        self._jars.clear()

    def holders(self, name: str) -> list[Path]:
        """Returns the jars and folders that have a class."""
        if name not in self._holders:
            self._holders[name] = [each for each in self._path if self._has(each, _entry(name))]
        return self._holders[name]

    def find(self, name: str, holder: Path | None = None) -> ClassFile | None:
        """Returns a class, that of a jar if one is given; None if it is in none, or cannot be read."""
        for each in [holder] if holder else self.holders(name):
            if (class_file := self._class(each, name)) is not None:
                return class_file
        return None

    def _class(self, holder: Path, name: str) -> ClassFile | None:
        if (holder, name) not in self._found:
            try:
                class_file = parse(self._content(holder, _entry(name)))
            except (OSError, ValueError, KeyError, zipfile.BadZipFile):
                class_file = None
            self._found[holder, name] = class_file
        return self._found[holder, name]

    def above(self, class_file: ClassFile) -> Iterator[ClassFile | str]:
        """Yields a class, its superclasses and interfaces; of those of JMS, Java and in no jar the names."""
        waiting, seen = [class_file], {class_file.name}
        while waiting:
            one = waiting.pop()
            yield one
            for name in one.parents:
                if name in seen:
                    continue
                seen.add(name)
                parent = None if name.startswith((*APIS, "java.")) else self.find(name)
                if parent is None:
                    yield name
                else:
                    waiting.append(parent)

    def ending(self, suffix: str) -> list[str]:
        """Returns the names of classes in jars that end alike, without nested classes."""
        jars = (jar for each in self._path if (jar := self._jar(each)) is not None)
        return sorted(
            name.removesuffix(".class").replace("/", ".")
            for jar in jars
            for name in jar.names()
            if name.endswith(f"{suffix}.class") and "$" not in name
        )

    def _jar(self, path: Path) -> Jar | None:
        """Returns a jar; None if it is a folder or no jar."""
        if path not in self._jars:
            try:
                self._jars[path] = None if path.is_dir() else self._open.enter_context(closing(Jar(path)))
            except (OSError, zipfile.BadZipFile):
                self._jars[path] = None
        return self._jars[path]

    def _has(self, holder: Path, entry: str) -> bool:
        jar = self._jar(holder)
        return (holder / entry).is_file() if jar is None else entry in jar

    def _content(self, holder: Path, entry: str) -> bytes:
        jar = self._jar(holder)
        return (holder / entry).read_bytes() if jar is None else jar.read(entry)


def _entry(name: str) -> str:
    return name.replace(".", "/") + ".class"
