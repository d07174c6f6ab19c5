"""Routes of the past: which generations keep theirs, and which were in force at a position."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from engine.router.generation import RouterProgress, Start
from engine.router.kept_routes import KeptRoutes, RouteHistory, to_keep
from engine.router.position_store import NotedProgress

START = Start("j", "id", {0: 10}, {}, "b1", "r", "run", sequence=4)
LAST = RouterProgress(START, None, None)
NOTED = NotedProgress("h", "p", LAST, 0)


def test_routes_are_kept_when_they_change_and_at_the_first_start() -> None:
    same, other = replace(START, sequence=5), replace(START, routes="other", sequence=5)
    assert to_keep(None, None, same) == (same,)
    assert to_keep(LAST, NOTED, same) == ()
    assert to_keep(LAST, NOTED, other) == (START, other)


def test_routes_of_a_generation_that_was_never_noted_are_kept() -> None:
    new = replace(START, routes="other", sequence=6)
    unnoted = RouterProgress(replace(new, sequence=5), None, None)
    assert to_keep(unnoted, NOTED, new) == (unnoted.start, new)
    assert to_keep(LAST, None, replace(START, sequence=5)) == (START, replace(START, sequence=5))


@given(
    steps=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8),
    partition=st.integers(0, 1),
    offset=st.integers(0, 45),
)
def test_the_routes_at_a_position_are_the_last_ones_that_began_at_or_before_it(
    steps: list[tuple[int, int]], partition: int, offset: int
) -> None:
    kept, at = [], {0: 0, 1: 0}
    for number, step in enumerate(steps):
        at = {each: at[each] + step[each] for each in at}
        kept.append(KeptRoutes(number, at, str(number)))
    began = [each for each in kept if each.positions[partition] <= offset]
    assert RouteHistory(kept).at(partition, offset) == (began[-1] if began else None)
    assert RouteHistory(kept).newest == kept[-1]


def test_a_partition_that_was_added_later_was_read_from_its_first_record_by_the_routes_of_then() -> None:
    history = RouteHistory([KeptRoutes(1, {0: 0}, "old"), KeptRoutes(2, {0: 5, 1: 3}, "new")])
    assert (history.at(1, 2), history.at(1, 3)) == (KeptRoutes(1, {0: 0}, "old"), KeptRoutes(2, {0: 5, 1: 3}, "new"))
    assert RouteHistory([]).at(0, 0) is RouteHistory([]).newest is None
