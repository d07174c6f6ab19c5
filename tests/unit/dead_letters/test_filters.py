"""Which dead letters filters take."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.cli.dlt import read_filters
from engine.dead_letters.letter import Filters
from engine.errors import UsageError
from routes.predicate.bodies import Bounds
from tests.unit.dead_letters.letters import letter

AT = 1_795_240_800_123
"""When `letter()` failed."""


def filters(
    *headers: str,
    reasons: tuple[str, ...] = (),
    routes: tuple[str, ...] = (),
    since: str | None = None,
    until: str | None = None,
    where: str | None = None,
) -> Filters:
    return read_filters(reasons, routes, since, until, headers, where)


@pytest.mark.parametrize(
    "taken",
    [
        filters(),
        filters(reasons=("key-not-found",)),
        filters(reasons=("unmatched", "key-not-found")),
        filters(routes=("orders",)),
        filters(since="2026-11-21T06:00:00.123Z"),
        filters(until="2026-11-21T06:00:00.124Z"),
        filters(since="2026-11-21", until="2026-11-22"),
        filters("region=emea"),
        filters("CorrelationId=42"),
        filters("JMSCorrelationID=42"),
        filters("jms.JMSCorrelationID=42"),
        filters("jmsbridge.source=s"),
        filters("region=apac", "region=emea", "JMSType=order"),
        filters(where="region = 'emea' AND amount > 4"),
        filters(where="msg.address==orders"),
    ],
    ids=lambda given: " ".join(given.options()) or "none",
)
def test_a_dead_letter_is_taken(taken: Filters) -> None:
    assert taken.takes(letter())


def test_a_body_beyond_the_bounds_of_the_configuration_has_no_values() -> None:
    whole = filters(where="msg.text IS NOT NULL")
    assert whole.takes(letter())
    assert not replace(whole, bounds=Bounds(size=0)).takes(letter())


@pytest.mark.parametrize(
    "left",
    [
        filters(reasons=("unmatched",)),
        filters(routes=("prices", "-")),
        filters(since="2026-11-21T06:00:00.124Z"),
        filters(until="2026-11-21T06:00:00.123Z"),
        filters(until="2000-01-01"),
        filters("region=apac"),
        filters("region=emea", "JMSType=price"),
        filters("colour=blue"),
        filters(where="amount > 5"),
        filters(where="colour = 'blue'"),
        filters(where="NOT colour = 'blue'"),
        filters(reasons=("key-not-found",), routes=("prices",)),
    ],
    ids=lambda given: " ".join(given.options()),
)
def test_a_dead_letter_is_left(left: Filters) -> None:
    assert not left.takes(letter())


def test_a_line_stands_for_no_route() -> None:
    assert filters(routes=("-",)).takes(letter(route=""))
    assert not filters(routes=("orders",)).takes(letter(route=""))


def test_a_header_without_a_value_or_utf8_fulfils_nothing_and_breaks_nothing() -> None:
    dead = letter(("colour", None), ("shade", b"\xff"))
    assert not filters("colour=").takes(dead)
    assert not filters("shade=x").takes(dead)


@pytest.mark.parametrize("text", ["yesterday", "2", "", "-2h", "2w", "2026-13-01", "99999999d"])
def test_a_time_that_is_none_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--since '.*': expected a time, as 2026-11-22T06:00:00Z, or how long ago"):
        filters(since=text)


@pytest.mark.parametrize("pair", ["region", "=emea"])
def test_a_header_without_name_or_value_is_refused(pair: str) -> None:
    with pytest.raises(UsageError, match=f"--header '{pair}': expected NAME=VALUE"):
        filters(pair)


def test_a_predicate_with_a_fault_shows_where() -> None:
    with pytest.raises(UsageError) as caught:
        filters(where="region = = 'emea'")
    first, text, caret = str(caught.value).splitlines()
    assert first.startswith("--where:10: error: ")
    assert text.strip() == "region = = 'emea'"
    assert caret.index("^") - 4 == "region = = 'emea'".rindex("=")


def test_filters_can_be_written_down_as_options_that_a_shell_reads() -> None:
    given = filters("region=e m", reasons=("b", "a"), since="2026-11-21T06:00:00.123Z", where="amount > 5")
    assert given.options() == [
        "--reason a",
        "--reason b",
        "--since 2026-11-21T06:00:00.123Z",
        "--header 'region=e m'",
        "--where 'amount > 5'",
    ]


def test_there_are_filters_only_if_one_is_given() -> None:
    assert not filters()
    assert filters(until="1d")
