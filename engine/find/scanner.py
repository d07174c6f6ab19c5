"""Scanner of topics in a child process, `jmsbridge.find.FindProcess`: it reads pieces of partitions, all cores at once.

The process evaluates predicates as the router does. Settings of Kafka's clients reach it over a file without a name.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from engine.errors import HardFailureError, SetupError, UnreachableError, UsageError
from engine.find.header_names import SHORT_NAMES, header_names
from engine.find.stretches import Amounts
from engine.jars import class_data_options, jars
from engine.java import find_java
from engine.kafka.errors import unavailable
from engine.kafka.reader import LocatedRecord, Position
from engine.kafka.settings import java_settings
from engine.private import UMASK, nameless_file
from engine.record import Record
from engine.schemas.documents import documents_of
from engine.schemas.schema_json import registry_settings, schemas_json
from engine.schemas.section import SchemaConfig
from engine.spark.jvm import argument_file, class_options, close_pipes, descriptor_path, ignore_signals
from engine.spark.section import SparkConfig
from routes.errors import BridgeError
from routes.predicate.rule_json import RuleTable
from routes.properties import HEADER_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from engine.find.id_filters import IdFilters
    from engine.find.question import FindQuestion
    from engine.find.stretches import Piece, RecordPlace
    from routes.model import Config
    from routes.predicate import Predicate

__all__ = ["ScannedStretch", "Scanner", "criteria"]

_MAIN = "jmsbridge.find.FindProcess"
_HALLMARK = "jms-bridge-spark.jar"
_JAVA_OPTIONS = ("-Xmx1g", "-XX:+UseParallelGC")
_CALM_OPTIONS = ("-Xmx256m", "-XX:ActiveProcessorCount=1")
_NICE, _CALM_NICE = 10, 19
"""Amounts by which the process gives way to others, such as the bridge on the same machine."""
_SESSION = Path("/proc/self/autogroup")
"""Nice value of the session of a process, see `sched(7)`."""
_END_SECONDS = 5.0
_FIXED = {
    "auto.offset.reset": "none",
    "enable.auto.commit": "false",
    "metric.reporters": "",
    # A reader at the end of a partition waits this long before it can turn to another one.
    "fetch.max.wait.ms": "20",
}
_DEFAULTS = {
    "max.partition.fetch.bytes": str(2 << 20),
    "max.poll.records": "5000",
    "receive.buffer.bytes": str(1 << 20),
}
_ID = "ID:"
_ID_FIELDS = {
    "message_id": ("JMSMessageID",),
    "correlation_id": ("JMSCorrelationID",),
    "either_id": ("JMSMessageID", "JMSCorrelationID"),
}


@dataclass(frozen=True, slots=True)
class ScannedStretch:
    """End of a stretch, behind its records."""

    amounts: Amounts
    leaves_some: bool
    """True if more records were found than wanted."""


class Scanner:
    """Child process that reads topics for one question; a context manager, which starts it at once."""

    def __init__(
        self, config: Config, question: FindQuestion, filters: IdFilters | None = None, *, calm: bool = False
    ) -> None:
        """Starts nothing yet; the process writes `filters` that are missing.

        With `calm` it uses one core, little memory, and the lowest priority.

        Raises:
            PredicateError: `question.where` breaks the routing language.
            HardFailureError: the file of a source's schema cannot be used.
        """
        self._servers = config.kafka_access.servers
        self._calm = calm
        self._spark = config.section(SparkConfig)
        self._given = {
            "kafka": {**_DEFAULTS, **java_settings(config.kafka_access, "consumer"), **_FIXED},
            "bounds": [config.routing.bounds.size, config.routing.bounds.depth, config.routing.bounds.elements],
            "criteria": criteria(question),
            "filters": None if filters is None else filters.written(),
            **_schemas(config, question),
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    def __enter__(self) -> Self:
        """Starts the process.

        Raises:
            SetupError: Java is missing or too old, or the jars are missing.
        """
        extras = jars() / "spark"
        if not (extras / _HALLMARK).exists():
            msg = f"no {_HALLMARK} in {extras}: run `make setup`"
            raise SetupError(msg)
        more = [path for path in [self._spark.get("spark.driver.extraClassPath")] if path]
        options = _CALM_OPTIONS if self._calm else _JAVA_OPTIONS
        java = [*options, *class_options(extras, more), *class_data_options("find", "spark")]
        self._log = nameless_file(b"")
        given = nameless_file(json.dumps(self._given).encode())
        with given, argument_file([*java, _MAIN, descriptor_path(given)]) as arguments:
            self._process = subprocess.Popen(
                [find_java(), f"@{descriptor_path(arguments)}"],
                pass_fds=(given.fileno(), arguments.fileno()),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                umask=UMASK,
                start_new_session=True,
                preexec_fn=partial(_prepare, _CALM_NICE if self._calm else _NICE),
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            close_pipes(self._process.stdin, self._process.stdout)
            self._process.wait(_END_SECONDS)
        if self._log is not None:
            self._log.close()

    def scan(
        self, pieces: Sequence[Piece], most: int, after: RecordPlace | None
    ) -> Iterator[Amounts | LocatedRecord | ScannedStretch]:
        """Reads pieces; yields the amounts so far now and then, the newest records behind a place, and the end.

        Raises:
            HardFailureError: Kafka refuses access.
            SetupError: the process has ended.
            UnreachableError: Kafka or the schema registry does not answer.
            UsageError: the records are too large for so many.
        """
        asked = [[piece.topic, piece.partition, piece.start, piece.end] for piece in pieces]
        self._send({"pieces": asked, "most": most, "after": after})
        amounts = Amounts()
        while True:
            frame = self._bytes(1)
            if frame == b"P":
                amounts = Amounts(*self._numbers("!qqq"))
                yield amounts
            elif frame == b"H":
                yield self._record()
            elif frame == b"D":
                yield ScannedStretch(amounts, self._numbers("!?")[0])
                return
            else:
                raise self._failure()

    def _send(self, stretch: object) -> None:
        assert self._process is not None, "it was entered"
        assert self._process.stdin is not None, "it is a pipe"
        try:
            self._process.stdin.write(json.dumps(stretch).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise self._ended() from error

    def _record(self) -> LocatedRecord:
        topic = (self._text() or b"").decode()
        partition, offset, time_ms = self._numbers("!iqq")
        key, value = self._text(), self._text()
        count = self._numbers("!i")[0]
        headers = tuple(((self._text() or b"").decode("utf-8", "replace"), self._text()) for _ in range(count))
        return LocatedRecord(Position(topic, partition, offset), time_ms, Record(key, value, headers))

    def _failure(self) -> Exception:
        kind, text = self._bytes(1), (self._text() or b"").decode("utf-8", "replace")
        if kind == b"A":
            return unavailable(self._servers, text)
        if kind == b"S":
            return UnreachableError(text)
        if kind == b"R":
            return HardFailureError(f"Kafka at {self._servers} refuses to let this user read: {text}")
        return UsageError(text) if kind == b"L" else BridgeError(f"the search failed: {text}")

    def _numbers(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(form, self._bytes(struct.calcsize(form)))

    def _text(self) -> bytes | None:
        size = self._numbers("!i")[0]
        return None if size < 0 else self._bytes(size)

    def _bytes(self, number: int) -> bytes:
        assert self._process is not None, "it was entered"
        assert self._process.stdout is not None, "it is a pipe"
        found = self._process.stdout.read(number)
        if len(found) < number:
            raise self._ended()
        return found

    def _ended(self) -> SetupError:
        assert self._log is not None, "it was entered"
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").split("\n")
        said = next((line for line in reversed(lines) if line.strip()), "it said nothing")
        return SetupError(f"the Java process of the search has ended: {said.strip()}")


def criteria(question: FindQuestion) -> dict[str, Any]:
    """Tests that a record has to pass, as `jmsbridge.find.Criteria` reads them.

    Raises PredicateError if `question.where` breaks the routing language.
    """
    wanted: dict[tuple[str, ...], set[str]] = {}
    for name, value in question.headers:
        wanted.setdefault((name,), set()).add(value)
    for attribute, fields in _ID_FIELDS.items():
        given = getattr(question, attribute)
        if given is not None:
            bare = given.removeprefix(_ID)
            wanted.setdefault(tuple(f"jms.{field}" for field in fields), set()).update({bare, _ID + bare})
    return {
        "since": question.since,
        "until": question.until,
        "key": question.key,
        "text": question.text,
        "headers": [
            {"names": [form for name in names for form in header_names(name)], "values": sorted(values)}
            for names, values in wanted.items()
        ],
        "filter": None if question.predicate is None else _rules(question.predicate),
        "styles": {
            "short": {short: text for text, short in SHORT_NAMES.items()},
            "typed": [f"jms.{kind}.{field}" for field, kind in HEADER_FIELDS.items()],
        },
    }


def _rules(predicate: Predicate) -> str:
    table = RuleTable()
    return table.json([table.rule(predicate, None)])


def _schemas(config: Config, question: FindQuestion) -> dict[str, Any]:
    """Registry and schemas with which a predicate reads bodies; both None if no body has a schema that is known.

    Raises HardFailureError if the file of a schema cannot be used.
    """
    documents = None if question.where is None else documents_of(config)
    if documents is None:
        return {"registry": None, "sources": None}
    for each in config.source_schemas:
        documents.check_file(each)
    registry = config.section(SchemaConfig)
    return {
        "registry": registry_settings(registry),
        "sources": schemas_json(config.source_schemas, config.path.parent),
    }


def _prepare(nice: int) -> None:
    ignore_signals()
    os.nice(nice)
    # Where Linux shares out the processor by sessions, the nice value counts within one session alone.
    with suppress(OSError):
        _SESSION.write_text(str(nice), encoding="ascii")
