"""Which addresses clients of a listener may use, and what they mean by one."""

from __future__ import annotations

from typing import Any

import pytest

from engine.connectors.amqp.codec.values import Array, Symbol
from engine.connectors.amqp.settings import AmqpSourceConfig
from engine.connectors.amqp.system import SYSTEM
from engine.connectors.amqp_listener.access import AllowedDestinations, Logins, address_of


@pytest.mark.parametrize(
    ("fields", "destination"),
    [
        (["a"], "queue:a"),
        (["a", *[None] * 5, Symbol("topic")], "topic:a"),
        (["a", *[None] * 5, Array(0xA3, (Symbol("x"), Symbol("topic")))], "topic:a"),
        (["a", *[None] * 5, Symbol("queue")], "queue:a"),
        (["topic://a"], "topic:a"),
        (["queue://a", *[None] * 5, Symbol("topic")], "queue:a"),
        ([], None),
        ([""], None),
        ([5], None),
    ],
)
def test_the_kind_of_an_address_is_told_by_a_capability_or_a_prefix(fields: list[Any], destination: str | None) -> None:
    assert address_of(fields, 6) == destination


def test_addresses_are_listed_or_begin_like_a_listed_one() -> None:
    addresses = AllowedDestinations(("queue:a", "topic:b.*"))
    allowed = ("queue:a", "topic:b.", "topic:b.c.d")
    assert [each for each in (*allowed, "queue:ab", "topic:b", "queue:b.c", "topic:a", "") if each in addresses] == [
        *allowed
    ]
    assert "queue:x" in AllowedDestinations(("*",))
    assert "queue:x" not in AllowedDestinations(())


def _logins(username: str | None) -> Logins:
    config = AmqpSourceConfig(name="l", type=SYSTEM, destinations=(), username=username, password="secret")
    return Logins(config)


def test_a_certificate_does_not_replace_the_password() -> None:
    logins = _logins("app")
    assert logins.mechanisms(proven=True) == ("PLAIN",)
    assert not logins.admit("EXTERNAL", b"", proven=True)
    assert not logins.admit("PLAIN", b"\0app\0wrong", proven=True)
    assert logins.admit("PLAIN", b"\0app\0secret", proven=True)


def test_a_certificate_is_a_login_where_no_user_name_is_set() -> None:
    logins = _logins(None)
    assert logins.mechanisms(proven=True) == ("EXTERNAL", "ANONYMOUS")
    assert logins.admit("EXTERNAL", b"", proven=True)
    assert not logins.admit("EXTERNAL", b"", proven=False)
