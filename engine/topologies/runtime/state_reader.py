"""State of a topology, as it is now or as its last commit left it, read in a Spark session that is there."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from engine.errors import SetupError
from engine.spark.settings import is_cluster
from engine.spark.stored_files import numbered
from engine.topologies.library.program import JVM_ERRORS, reason_of
from engine.topologies.library.state import NodeState, StateError
from engine.topologies.question import StateAnswer, StateFault
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from engine.spark.stored_files import Folder
    from engine.topologies.library.program import Program
    from engine.topologies.question import StateQuestion
    from engine.topologies.runtime.kept import KeptState

__all__ = ["StateReader", "committed_positions"]

_MOST_BYTES = 256 * 1024
"""Length of the rows of an answer as JSON from which on no row is added."""

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
            yield self._state(node, committed)
        finally:
            committed.close()

    def answer(self, question: StateQuestion) -> StateAnswer:
        """The answer to a question of the status page; the answer reports failures."""
        try:
            # On a cluster the shares are in other processes.
            is_here = not is_cluster(self.spark.sparkContext.master)
            return self._live(question) if question.live and is_here else self._committed(question)
        except StateError as error:
            return StateAnswer(fault=str(error), kind=StateFault.QUESTION)
        except BridgeError as error:
            return StateAnswer(fault=str(error), kind=StateFault.AWAY)
        except JVM_ERRORS as error:
            _log.warning("the state could not be read", topology=self.program.topology.name, why=reason_of(error))
            other = "; ask again, or for the state of the last commit" if question.live else ""
            return StateAnswer(fault=f"the state could not be read: {reason_of(error)}{other}", kind=StateFault.AWAY)
        except Exception:
            # The thread that answers goes on: the next question may be answered.
            _log.exception("the state could not be read", topology=self.program.topology.name)
            fault = "the state could not be read; the log of the topology says why"
            return StateAnswer(fault=fault, kind=StateFault.AWAY)

    def _live(self, question: StateQuestion) -> StateAnswer:
        jvm: Any = self.spark._jvm
        live = jvm.jmsbridge.streams.LiveState(self.program.topology.name)
        positions: dict[str, dict[str, int]] = {}
        # Before the rows: what is read before these positions is in them.
        for place, offset in dict(live.positions()).items():
            topic, _, partition = place.partition("\t")
            positions.setdefault(topic, {})[partition] = offset
        rows, after = _page(self._state(question.node, live), question)
        return StateAnswer(tuple(rows), after, live=True, positions=positions)

    def _committed(self, question: StateQuestion) -> StateAnswer:
        with self.open(question.node) as state:
            positions = committed_positions(self.folder)
            rows, after = _page(state, question)
            return StateAnswer(tuple(rows), after, positions=positions)

    def _state(self, node: str, opened: Any) -> NodeState:
        """The state of a node in a `jmsbridge.streams.LiveState` or `CommittedState`."""
        ranges = self.spark._jvm.jmsbridge.streams.StateRange  # type: ignore[union-attr]
        return NodeState(self.program, node, lambda *bounds, place: opened.rows(node, ranges(*bounds), place))


def committed_positions(folder: Folder) -> dict[str, dict[str, int]]:
    """Offsets behind the last batch that is in the state of a folder, by topic and partition; none without a commit."""
    committed = max(numbered(folder / "spark" / "commits"), default=None)
    if committed is None:
        return {}
    lines = (folder / "spark" / "offsets" / str(committed)).read_text(encoding="utf-8").splitlines()
    found: dict[str, dict[str, int]] = json.loads(lines[-1])
    return found


def _page(state: NodeState, question: StateQuestion) -> tuple[list[dict[str, Any]], str]:
    return state.page(
        question.key,
        from_key=question.from_key,
        to_key=question.to_key,
        prefix=question.prefix,
        since=question.since_ms,
        until=question.until_ms,
        limit=question.limit,
        after=question.after,
        most_bytes=_MOST_BYTES,
    )
