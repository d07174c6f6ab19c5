"""Path on a file system of Hadoop, for the files of a checkpoint that is not on a local disk."""

from __future__ import annotations

import posixpath
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from engine.errors import HardFailureError, SetupError, UnreachableError
from routes.keys.values import scheme_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["HadoopPath", "StorageUnavailableError", "opened"]

_UNKNOWN = ("UnsupportedFileSystemException", "ClassNotFoundException", "NoClassDefFoundError")
_REFUSED = ("AccessControlException", "AccessDeniedException")
_TAKEN = ("FileAlreadyExistsException", "RemoteFileChangedException")


class StorageUnavailableError(UnreachableError):
    """A file system of Hadoop fails at a request; a later attempt may succeed."""


@dataclass(frozen=True, slots=True)
class HadoopPath:
    """Path of a file or folder, with those methods of `pathlib.Path` that a checkpoint needs.

    Raises:
        HardFailureError: the file system refuses the bridge's user.
        StorageUnavailableError: it does not answer, or fails.
    """

    uri: str
    _files: Any = field(repr=False, compare=False)
    """The `jmsbridge.HadoopFiles` of its file system."""

    @classmethod
    def of(cls, spark: SparkSession, uri: str) -> HadoopPath:
        """The path of a URI, opened by the JVM of a session.

        Raises:
            SetupError: Hadoop has no class for the file system.
        """
        jvm: Any = spark._jvm
        with _translated(uri):
            return cls(uri, jvm.jmsbridge.HadoopFiles(uri))

    def __truediv__(self, name: str) -> HadoopPath:
        return HadoopPath(f"{self.uri}/{name}", self._files)

    def __str__(self) -> str:
        return self.uri

    @property
    def name(self) -> str:
        """Last part of the path."""
        return posixpath.basename(self.uri)

    @property
    def parent(self) -> HadoopPath:
        """The folder that it is in."""
        return HadoopPath(posixpath.dirname(self.uri), self._files)

    def absolute(self) -> HadoopPath:
        """The path itself."""
        return self

    def as_uri(self) -> str:
        """The URI."""
        return self.uri

    def exists(self) -> bool:
        """True if there is a file or a folder."""
        with _translated(self.uri):
            return bool(self._files.exists(self.uri))

    def iterdir(self) -> Iterator[HadoopPath]:
        """Yields the entries of the folder; FileNotFoundError without the folder."""
        with _translated(self.uri):
            names = list(self._files.names(self.uri))
        yield from (self / name for name in names)

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The content of the file; FileNotFoundError without it."""
        with _translated(self.uri):
            return bytes(self._files.read(self.uri)).decode(encoding, errors)

    def write_text(self, text: str) -> None:
        """Writes the file in one step, in place of a former one."""
        with _translated(self.uri):
            self._files.replace(self.uri, text.encode())

    def make_with(self, name: str, text: str) -> None:
        """Makes the folder with one file in it, in one step; FileExistsError if it is there."""
        with _translated(self.uri):
            self._files.makeFolder(self.uri, name, text.encode())

    def remove(self) -> None:
        """Removes the file, or the folder with all that is in it, if it is there."""
        with _translated(self.uri):
            self._files.remove(self.uri)


def opened(spark: SparkSession, place: Path | str) -> Path | HadoopPath:
    """The folder at a place of the configuration, which is a local path or a URI; raises as `HadoopPath.of`."""
    return HadoopPath.of(spark, place) if isinstance(place, str) else place


@contextmanager
def _translated(uri: str) -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        raise _error(uri, error) from error


def _error(uri: str, error: Py4JJavaError) -> Exception:
    causes: list[tuple[str, str]] = []
    throwable = error.java_exception
    while throwable is not None and len(causes) < 10:
        name = str(throwable.getClass().getName()).rpartition(".")[2]
        causes.append((name, str(throwable.getMessage() or "").partition("\n")[0]))
        throwable = throwable.getCause()
    names = [name for name, _ in causes]
    why = ": ".join(causes[0])
    if "FileNotFoundException" in names:
        return FileNotFoundError(uri)
    if any(name in _TAKEN for name in names):
        return FileExistsError(uri)
    if any(name in _UNKNOWN for name in names):
        return SetupError(
            f"{uri}: Spark has no class for the file system '{scheme_of(uri)}': {causes[-1][1]}. Name the jars that "
            "have it in spark.driver.extraClassPath, on a cluster in spark.executor.extraClassPath too"
        )
    if any(name in _REFUSED for name in names):
        return HardFailureError(f"{uri}: the file system refuses the bridge: {why}")
    return StorageUnavailableError(f"{uri} cannot be used: {why}")
