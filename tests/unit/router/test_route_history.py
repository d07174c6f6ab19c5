"""Routes of the past: which ones are kept, and which were in force at a position."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from engine.router.generation import KeptRoutes, RouterProgress, Start
from engine.router.kept_routes import RouteHistory, since_of, to_keep
from engine.router.position_store import NotedProgress


def progress(start: Start) -> RouterProgress:
    return RouterProgress(start, None, None)


START = Start("j", "id", {0: 10}, {}, "b1", "r", "run", sequence=4)
LAST = progress(START)
NOTED = NotedProgress("h", "p", LAST, 0, is_sealed=True)


def test_routes_are_kept_when_others_replace_them() -> None:
    other = replace(START, routes="other", sequence=5, positions={0: 20})
    assert to_keep(None, None, START) is None
    assert to_keep(LAST, NOTED, replace(START, sequence=5)) is None
    assert to_keep(LAST, NOTED, other) == to_keep(LAST, None, other) == KeptRoutes(4, "id", {0: 10}, {0: 20}, "r")


def test_routes_are_kept_although_the_first_generation_with_others_was_never_noted() -> None:
    unnoted = replace(START, routes="other", sequence=5, positions={0: 20})
    new = replace(unnoted, sequence=6, positions={0: 21}, routes_since=since_of(progress(unnoted), "other"))
    assert to_keep(progress(unnoted), NOTED, new) == KeptRoutes(4, "id", {0: 10}, {0: 20}, "r")


def test_a_note_of_others_is_not_believed() -> None:
    forged = replace(NOTED, progress=progress(replace(START, routes="forged")), is_sealed=False)
    assert to_keep(LAST, forged, replace(START, sequence=5)) is None


@given(
    steps=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from("abc")), min_size=1, max_size=9),
    lost=st.sets(st.integers(0, 9)),
    partition=st.integers(0, 1),
    offset=st.integers(0, 45),
)
def test_the_routes_at_a_position_are_those_of_then_or_not_known(
    steps: list[tuple[int, int, str]], lost: set[int], partition: int, offset: int
) -> None:
    at, last, kept, starts = {0: 3, 1: 0}, None, [], []
    for number, (first, second, routes) in enumerate(steps, start=1):
        at = {0: at[0] + first, 1: at[1] + second}
        start = Start("j", "id", at, {}, "b", routes, sequence=number, routes_since=since_of(last, routes))
        kept.append(to_keep(last, None, start))
        last = progress(start)
        starts.append(start)
    notes = [each for number, each in enumerate(kept) if each is not None and number not in lost]
    present = KeptRoutes(start.sequence, "id", start.in_force_since, None, start.routes)
    found = RouteHistory([*notes, present]).at(partition, offset)
    then = [each.routes for each in starts if each.positions[partition] <= offset]
    assert found is None or found.routes == then[-1]
    if not lost:
        assert (found is not None) == bool(then)


def test_a_partition_that_was_added_later_was_read_from_its_first_record_by_the_routes_of_then() -> None:
    old, new = KeptRoutes(1, "id", {0: 0}, {0: 5, 1: 3}, "old"), KeptRoutes(2, "id", {0: 5, 1: 3}, None, "new")
    history = RouteHistory([old, new])
    assert (history.at(1, 2), history.at(1, 3), history.at(2, 0)) == (old, new, new)
    assert RouteHistory([]).at(0, 0) is RouteHistory([]).newest is None
