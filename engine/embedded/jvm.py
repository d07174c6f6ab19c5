"""Base class of the embedded brokers that run in a JVM: which Java, its options, and the log file."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from engine.embedded.server import ETC, EmbeddedServer
from engine.jars import class_data_options
from engine.java import LATE_OPTIMISING, find_java

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["JvmServer"]

_THROWN = re.compile(
    r"^(?:Error: |(?:Caused by: )?(?=(?:[\w$]+\.)+[\w$]*(?:Exception|Error|Throwable)\b))(.*)", re.MULTILINE
)
_LOGGED_ERROR = re.compile(r"^.* (?:ERROR|FATAL) +(.*)$", re.MULTILINE)


class JvmServer(EmbeddedServer):
    """A broker in a JVM of its own."""

    causes: ClassVar[Sequence[re.Pattern[str]]] = (_THROWN, _LOGGED_ERROR)

    def __init__(self, folder: Path, ports: Mapping[str, int], heap_megabytes: int) -> None:
        """`ports` are those the broker listens on, by the setting that changes them."""
        super().__init__(folder, ports)
        self._jvm = [f"-Xmx{heap_megabytes}m", "-XX:+UseG1GC", *LATE_OPTIMISING]

    @abstractmethod
    def _prepare(self, java: Path) -> None:
        """Prepares the folder for the program."""

    @abstractmethod
    def _program(self) -> Sequence[str | Path]:
        """The arguments of Java, to be run in `folder`: properties, class path, main class and its arguments."""

    def _find_program(self) -> Path:
        return find_java()

    def _command(self, program: Path) -> Sequence[str | Path]:
        self._prepare(program)
        classes = class_data_options(self.title.lower())
        return [program, *self._jvm, *classes, *self._logging(), *self._program()]

    def _logging(self) -> list[str]:
        return [
            f"-Dlog4j2.configurationFile={(ETC / 'log4j2.properties').as_uri()}",
            f"-Djmsbridge.log={self.log.relative_to(self.folder)}",
            "-Dlog4j2.disableJmx=true",
        ]
