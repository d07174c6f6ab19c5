"""State of a topology as its last committed batch left it, read in a Spark session that is there."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from engine.errors import SetupError
from engine.spark.stored_files import numbered
from engine.topologies.library.program import JVM_ERRORS, reason_of
from engine.topologies.library.state import NodeState
from engine.topologies.question import StateAnswer
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from engine.spark.stored_files import Folder
    from engine.topologies.library.program import Program
    from engine.topologies.question import StateQuestion
    from engine.topologies.runtime.kept import KeptState

__all__ = ["StateReader"]

_MOST_CHARACTERS = 256 * 1024
"""Greatest length of the rows of an answer as JSON."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StateReader:
    """Reader of the state in a folder, of a program that fits it. From any thread, and beside a run of the program."""

    spark: SparkSession
    program: Program
    kept: KeptState
    folder: Folder

    @contextmanager
    def open(self, node: str) -> Iterator[NodeState]:
        """Opens the state of a node, as the last commit leaves it now; later commits are not in it.

        Raises:
            StateError: the node keeps no state that can be shown.
            SetupError: nothing has been committed yet.
        """
        numbers = numbered(self.folder / "spark" / "commits")
        if not numbers:
            msg = f"no state in {self.folder}: the topology has not run yet, or committed nothing"
            raise SetupError(msg)
        jvm: Any = self.spark._jvm
        streams = jvm.jmsbridge.streams
        where = (self.folder / "state").absolute().as_uri(), max(self.kept.partitions.values()), max(numbers) + 1
        committed = streams.CommittedState(self.program.java, *where, self.kept.shares_later)
        try:
            yield NodeState(self.program, node, lambda *bounds: committed.rows(node, streams.StateRange(*bounds)))
        finally:
            committed.close()

    def answer(self, question: StateQuestion) -> StateAnswer:
        """The answer to a question of the status page; the answer reports failures."""
        try:
            with self.open(question.node) as state:
                times = {"since": question.since_ms, "until": question.until_ms}
                read = state.rows(question.key, prefix=question.prefix, limit=question.limit + 1, **times)
                rows: list[dict[str, Any]] = []
                length = 0
                for row in read:
                    length += len(json.dumps(row))
                    if len(rows) == question.limit or length > _MOST_CHARACTERS:
                        return StateAnswer(tuple(rows), has_more=True)
                    rows.append(row)
                return StateAnswer(tuple(rows))
        except BridgeError as error:
            return StateAnswer(fault=str(error))
        except JVM_ERRORS as error:
            _log.warning("the state could not be read", topology=self.program.topology.name, why=reason_of(error))
            return StateAnswer(fault=f"the state could not be read: {reason_of(error)}")
        except Exception:
            # The thread that answers goes on: the next question may be answered.
            _log.exception("the state could not be read", topology=self.program.topology.name)
            return StateAnswer(fault="the state could not be read; the log of the topology says why")
