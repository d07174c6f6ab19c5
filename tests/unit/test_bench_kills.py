"""The resumption after a kill, from the times of published records."""

from __future__ import annotations

from bench.kills import resumed

KILLED = 100.0


def test_it_is_the_end_of_the_longest_time_without_a_new_record() -> None:
    appended = [(99.0, 0, 5), (99.5, 1, 7), (100.4, 0, 6), (106.0, 0, 7), (106.1, 1, 8)]
    assert resumed(appended, KILLED) == 6.0


def test_records_that_were_published_before_do_not_count() -> None:
    appended = [(99.0, 0, 5), (99.1, 0, 6), (103.0, 0, 5), (103.1, 0, 6), (107.0, 0, 7)]
    assert resumed(appended, KILLED) == 7.0
