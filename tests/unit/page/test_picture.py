"""Texts in the boxes of a picture: short enough, and told apart."""

import pytest

from engine.page.picture import distinct, shortened


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders", "orders"),
        ("payments-frankfurt", "payments-frankfurt"),
        ("payments-frankfurt-in", "payments…nkfurt-in"),
    ],
)
def test_a_long_name_loses_its_middle(text: str, shown: str) -> None:
    assert shortened(text, 18) == shown
    assert len(shown) <= 18


def test_names_that_would_look_alike_show_where_they_differ() -> None:
    names = ["settlement-frankfurt-high-value", "settlement-amsterdam-high-value", "orders", "settlement-b"]
    shown = distinct(names, 18)
    assert shown == ["settle…frankfurt-…", "settle…amsterdam-…", "orders", "settlement-b"]
    assert all(len(each) <= 18 for each in shown)


def test_a_name_that_begins_another_and_one_that_is_there_twice_are_only_shortened() -> None:
    long = "a-very-long-name-of-a-route"
    assert distinct([long, long], 18) == [shortened(long, 18)] * 2
