"""Warnings of `jms-bridge validate` about destinations without a route, and routes without a destination."""

from __future__ import annotations

import pytest

from routes.config import lint_text
from routes.config.address_checks import addresses_of_sources
from routes.errors import Level

_HEAD = "bridge.id=b\n"
_SOURCE = "source.{name}.type={type}\nsource.{name}.url={type}://127.0.0.1:1\nsource.{name}.destinations={of}\n"


def warnings(destinations: str, *includes: str, more: str = "") -> list[tuple[int, str, str]]:
    """Line, message and hint of each warning of the check; the destinations are on line 4."""
    text = _HEAD + _SOURCE.format(name="s", type="stomp", of=destinations)
    text += "".join(
        f"routes.r{number}.in.include={include}\nroutes.r{number}.out.topic=o\n"
        for number, include in enumerate(includes)
    )
    checked = lint_text(text + more, ".", {}, [addresses_of_sources])
    assert not checked.errors
    before = lint_text(text + more, ".", {})
    added = [each for each in checked.faults if each not in before.faults]
    assert all(each.level is Level.WARNING for each in added)
    return [(each.line, each.message, each.hint) for each in added]


def test_a_destination_that_no_route_takes_is_told_with_a_near_name() -> None:
    first, second = warnings("queue:orders", "msg.address = 'ordres'")
    assert first == (4, "no route takes 'orders', which source 's' delivers", "did you mean ordres?")
    assert second == (5, "route 'r0' never gets a message: no source delivers 'ordres'", "did you mean orders?")


def test_the_column_is_that_of_the_name() -> None:
    text = _HEAD + _SOURCE.format(name="s", type="stomp", of="queue:orders, topic:lost.orders, topic:lost")
    text += "routes.r.in.include=msg.address = 'orders' OR msg.address = 'lost.orders'\nroutes.r.out.topic=o\n"
    (fault,) = lint_text(text, ".", {}, [addresses_of_sources]).faults
    assert text.splitlines()[fault.line - 1][fault.column - 1 :] == "lost"
    assert fault.hint == "add a route, or remove the destination"


@pytest.mark.parametrize(
    "include",
    [
        "TRUE",
        "msg.address = 'orders'",
        "msg.address LIKE 'ord%'",
        "region = 'emea'",
        "region IS NULL",
        "NOT (region IS NOT NULL)",
        "NOT (region IS NULL)",
        "msg.address = 'other' OR region IS NULL",
        "JMSDestination = 'queue:orders'",
        "msg.body.amount > 5",
        "msg.address <> 'other'",
    ],
)
def test_nothing_is_told_where_a_message_may_be_taken(include: str) -> None:
    assert warnings("queue:orders", include) == []


@pytest.mark.parametrize(
    "include",
    [
        "msg.address = 'other' AND region IS NULL",
        "msg.address IN ('other', 'others')",
        "msg.address LIKE 'oth%'",
        "msg.address = 'orders' AND msg.address = 'other'",
        "NOT (msg.address = 'orders') AND msg.body.amount > 5",
    ],
)
def test_conditions_that_are_false_for_the_address_take_nothing(include: str) -> None:
    assert "no route takes 'orders', which source 's' delivers" in [
        each[1] for each in warnings("queue:orders", include)
    ]


@pytest.mark.parametrize("destinations", ["queue:orders, topic:prices.>", "topic:prices.*", "topic:#"])
def test_a_wildcard_may_deliver_what_a_route_asks_for(destinations: str) -> None:
    assert warnings(destinations, "msg.address = 'prices.eur' OR msg.address = 'orders'") == []


def test_subjects_are_left_out() -> None:
    other = _SOURCE.format(name="o", type="nats", of="b")
    assert warnings("queue:a", "msg.address = 'a'", "msg.address = 'c'", more=other) == []


def test_replies_come_from_sinks() -> None:
    sink = "sink.k.type=stomp\nsink.k.url=stomp://127.0.0.1:1\nsink.k.reply-to=queue:replies\n"
    assert warnings("queue:a", "msg.address = 'a'", "msg.address = 'replies'", more=sink) == []


def test_topologies_may_read_what_no_route_takes() -> None:
    more = "topologies.t.build=shop:totals\n"
    assert warnings("queue:orders, queue:a", "msg.address = 'a'", more=more) == []


def test_a_condition_from_the_environment_is_not_shown() -> None:
    text = _HEAD + _SOURCE.format(name="s", type="stomp", of="queue:orders")
    text += "routes.r.in.include=msg.address = '${env:SECRET}'\nroutes.r.out.topic=o\n"
    faults = lint_text(text, ".", {"SECRET": "hidden"}, [addresses_of_sources]).faults
    assert len(faults) == 2
    assert "hidden" not in "".join(map(str, faults))
