"""What a dry run adds up."""

from __future__ import annotations

from engine.cli.dlt_output import histogram_json
from engine.dead_letters.replay import Histogram, Replayed, ReplayOutcome
from tests.unit.dead_letters.letters import letter


def test_dead_letters_are_added_up_by_reason_route_and_outcome_the_most_first() -> None:
    histogram = Histogram()
    for time in ("2026-11-21T06:00:00.000Z", "2026-11-21T05:00:00.000Z", "2026-11-21T07:00:00.000Z"):
        histogram.add(Replayed(letter(time=time), ReplayOutcome.WOULD_REPLAY))
    histogram.add(Replayed(letter(), ReplayOutcome.ALREADY_REPLAYED))
    histogram.add(Replayed(letter(reason="unmatched", route=""), ReplayOutcome.WOULD_REPLAY))
    first, *others = histogram_json(histogram)
    assert first == (
        '{"reason": "key-not-found", "route": "orders", "outcome": "would replay", "count": 3, '
        '"oldest": "2026-11-21T05:00:00.000Z", "newest": "2026-11-21T07:00:00.000Z"}'
    )
    assert len(others) == 2
    assert '"route": null' in others[1]
    assert histogram.count(ReplayOutcome.WOULD_REPLAY) == 4
    assert histogram.count(ReplayOutcome.WOULD_REPLAY, ReplayOutcome.ALREADY_REPLAYED) == 5


def test_reasons_that_somebody_made_up_cost_no_memory() -> None:
    histogram = Histogram()
    for number in range(3000):
        histogram.add(Replayed(letter(reason=str(number)), ReplayOutcome.WOULD_REPLAY))
    assert len(histogram.rows) == 1001
    group, row = histogram.rows[0]
    assert (group.reason, group.route, row.count) == ("(others)", "(others)", 2000)


def test_a_time_beyond_the_calendar_is_shown_as_a_number() -> None:
    histogram = Histogram()
    dead = letter(time="")
    histogram.add(
        Replayed(type(dead)(type(dead.located)(dead.position, 10**18, dead.located.record)), ReplayOutcome.REPLAYED)
    )
    (line,) = histogram_json(histogram)
    assert '"oldest": "1000000000000000000"' in line
