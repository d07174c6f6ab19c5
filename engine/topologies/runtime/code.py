"""Source files of topologies as they were at one moment; a running bridge keeps those in force.

The files are found by the import statements of the topology's module, and of those that it imports, without running
any of them. Modules of the standard library, of this project and of other installed packages are not among them.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import sys
import sysconfig
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["ModuleSource", "TopologyCode", "dump_codes", "load_codes", "read_code"]

_OURS = {"engine", "routes"}
_HASH_DIGITS = 16


class ModuleSource(NamedTuple):
    """Source of a module, or the folders of a package; `engine.topologies.library.served_modules` takes it."""

    name: str
    """Dotted name."""
    file: str
    """Path of the file; empty for a package without `__init__.py`."""
    folders: tuple[str, ...]
    """Folders of a package, in which its modules are looked for; empty for a module that is not a package."""
    source: bytes


@dataclass(frozen=True, slots=True)
class TopologyCode:
    """Source files that a topology is made of; none if its module is in no file."""

    modules: tuple[ModuleSource, ...] = field(default=(), repr=False)

    @property
    def hash(self) -> str:
        """The first digits of the SHA-256 over names and sources of all modules."""
        digest = hashlib.sha256()
        for each in self.modules:
            digest.update(f"{each.name}\0{len(each.source)}\0".encode() + each.source)
        return digest.hexdigest()[:_HASH_DIGITS]

    def changed(self, other: TopologyCode) -> list[str]:
        """Paths of the files that are in one of the two alone, or in both with another content."""
        before, after = ({each.file: each.source for each in code.modules if each.file} for code in (self, other))
        return [file for file in before | after if before.get(file) != after.get(file)]

    def dump(self) -> list[list[object]]:
        """Returns the code in the types of JSON, for `of` in another process."""
        return [[each.name, each.file, each.folders, base64.b64encode(each.source).decode()] for each in self.modules]

    @classmethod
    def of(cls, dumped: list[list[object]]) -> TopologyCode:
        """Restores code from the result of `dump`, also after it has been through JSON."""
        made = []
        for name, file, folders, source in dumped:
            assert isinstance(folders, list | tuple)
            made.append(ModuleSource(str(name), str(file), tuple(folders), base64.b64decode(str(source))))
        return cls(tuple(made))


def dump_codes(codes: Mapping[str, TopologyCode]) -> bytes:
    """Returns codes as one line of JSON, for `load_codes`."""
    return json.dumps({name: code.dump() for name, code in codes.items()}).encode()


def load_codes(dumped: bytes) -> dict[str, TopologyCode]:
    """Restores codes from the result of `dump_codes`."""
    return {name: TopologyCode.of(code) for name, code in json.loads(dumped or b"{}").items()}


def read_code(build: str, folder: Path) -> TopologyCode:
    """The source files on disk of the topology that `build` names, as `module:function`.

    Never raises for the content of files: a file that is not Python is taken as it is, and so is one that is missing.

    Args:
        build: name of the function.
        folder: the working directory, in which modules are looked for before Python's path.
    """
    module = build.partition(":")[0]
    reader = _Reader([folder, *(Path(each) for each in sys.path if each)], module.partition(".")[0])
    reader.follow(module)
    return TopologyCode(tuple(sorted(reader.kept(), key=lambda each: each.name)))


class _Reader:
    """Collects a module and its imports."""

    def __init__(self, path: Sequence[Path], own: str) -> None:
        """Modules are looked for in `path`; those of the package `own` are taken wherever they are."""
        self._path = path
        self._own = own
        self._found: dict[str, ModuleSource | None] = {}

    def kept(self) -> Iterator[ModuleSource]:
        """The modules with sources, and the packages without one that they are in."""
        sources = [each for each in self._found.values() if each is not None and each.file]
        yield from sources
        parents = {parent for each in sources for parent in _prefixes(each.name)[:-1]}
        yield from (each for each in self._found.values() if each and not each.file and each.name in parents)

    def follow(self, name: str) -> None:
        """Takes a module with the packages that it is in, and all that these import."""
        waiting = [name]
        while waiting:
            for each in _prefixes(waiting.pop()):
                if each not in self._found:
                    module = self._found[each] = self._look(each)
                    waiting += [] if module is None else _imports(module)

    def _look(self, name: str) -> ModuleSource | None:
        """The module, if there is one to be kept."""
        top, _, _ = name.partition(".")
        if top in _OURS or top in sys.stdlib_module_names:
            return None
        parent, _, last = name.rpartition(".")
        if parent:
            above = self._found.get(parent)
            places = [] if above is None else [Path(each) for each in above.folders]
        else:
            places = list(self._path)
        bare: list[str] = []
        for place in places:
            package = place / last
            for file, folders in ((package / "__init__.py", (str(package),)), (place / f"{last}.py", ())):
                if file.is_file():
                    return self._read(name, file, folders)
            if package.is_dir():
                bare.append(str(package))
        return ModuleSource(name, "", tuple(bare), b"") if bare else None

    def _read(self, name: str, file: Path, folders: tuple[str, ...]) -> ModuleSource | None:
        if name.partition(".")[0] != self._own and any(file.is_relative_to(each) for each in _installed()):
            return None
        try:
            return ModuleSource(name, str(file), folders, file.read_bytes())
        except OSError:
            # Whoever imports it is told why.
            return None


def _prefixes(name: str) -> list[str]:
    """`a`, `a.b` and `a.b.c` for `a.b.c`; nothing for a text that is not the name of a module."""
    parts = name.split(".")
    return [".".join(parts[: count + 1]) for count in range(len(parts))] if all(map(str.isidentifier, parts)) else []


@cache
def _installed() -> tuple[str, ...]:
    """Folders of installed packages."""
    return tuple({sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib", "platstdlib")})


def _imports(module: ModuleSource) -> Iterator[str]:
    """Names that may be modules which a module imports, at its top or in functions."""
    try:
        tree = ast.parse(module.source)
    except (SyntaxError, ValueError):
        # Whoever imports it is told why.
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = _start(module, node)
            yield start
            yield from (f"{start}.{alias.name}" for alias in node.names)


def _start(module: ModuleSource, node: ast.ImportFrom) -> str:
    """The absolute name of the module that `from … import` names."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    package = parts if module.folders else parts[:-1]
    above = package[: len(package) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])
