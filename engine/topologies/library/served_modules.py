"""Import of modules from sources that a process was given, in place of the files on disk.

A topology that runs so is made of the same code in all its processes, whatever its files hold by then. Modules keep
the paths of their files, so that errors name these, and files beside them are found.
"""

from __future__ import annotations

import pickle
import sys
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import decode_source, spec_from_loader
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import CodeType, ModuleType

__all__ = ["ServedModule", "serve", "with_served"]


class ServedModule(NamedTuple):
    """Module, or package without a source, as `engine.topologies.runtime.code` reads it."""

    name: str
    file: str
    folders: tuple[str, ...]
    source: bytes


class _Loader(InspectLoader):
    """Loader of one module."""

    def __init__(self, module: ServedModule) -> None:
        self._module = module

    def get_code(self, fullname: str) -> CodeType:
        """The code of the module; SyntaxError, with the place in the file, if it is not Python."""
        return self.source_to_code(self._module.source, self._module.file)

    def get_source(self, fullname: str) -> str:
        """The text of the module, for tracebacks."""
        return decode_source(self._module.source)

    def is_package(self, fullname: str) -> bool:
        return bool(self._module.folders)

    def get_filename(self, fullname: str) -> str:
        """The path from which the source was read."""
        return self._module.file

    def get_data(self, path: str) -> bytes:
        """The content of a file beside the module, for `pkgutil.get_data`."""
        return Path(path).read_bytes()


class _Finder(MetaPathFinder):
    """Finder of the modules that the process was given."""

    def __init__(self, modules: Iterable[ServedModule]) -> None:
        self.modules = {module.name: module for module in modules}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        module = self.modules.get(fullname)
        if module is None:
            return None
        if not module.file:
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = list(module.folders)
            return spec
        made = spec_from_loader(fullname, _Loader(module), origin=module.file, is_package=bool(module.folders))
        if made is not None:
            made.has_location = True
            if module.folders:
                made.submodule_search_locations = list(module.folders)
        return made


def serve(modules: Iterable[tuple[Any, ...]]) -> None:
    """Has this process import these modules from the given sources; a second call replaces those of the first.

    Args:
        modules: the fields of a `ServedModule` each.
    """
    sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, _Finder)]
    served = [ServedModule(*each) for each in modules]
    if served:
        sys.meta_path.insert(0, _Finder(served))


def with_served(data: bytes) -> bytes:
    """A pickle that serves the modules that this process is given, where it is loaded, before `data` is loaded."""
    modules = [tuple(module) for each in sys.meta_path if isinstance(each, _Finder) for module in each.modules.values()]
    return pickle.dumps(_Packed(modules, data)) if modules else data


class _Packed:
    def __init__(self, modules: list[tuple[Any, ...]], data: bytes) -> None:
        self._content = modules, data

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, self._content


def _unpacked(modules: list[tuple[Any, ...]], data: bytes) -> Any:
    serve(modules)
    # The data comes from the process that has packed it beside the modules.
    return pickle.loads(data)  # noqa: S301
