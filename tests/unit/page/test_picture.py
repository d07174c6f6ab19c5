"""Texts in the boxes of a picture: short enough, and told apart; and the choice of boxes where there are many."""

import pytest

from engine.page.picture import Edge, FlowNode, distinct, draw, shortened
from engine.page.view import Tone


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


def test_of_many_destinations_those_of_the_drawn_routes_are_drawn() -> None:
    routes = [FlowNode(f"r{n}", f"r{n}", Tone.GOOD, "", "route", n, href=f"/routes#r{n}") for n in range(100)]
    topics = [FlowNode(f"t{n}", f"t{n}", Tone.GOOD, "", "topic", 100 - n) for n in range(100)]
    topics.append(FlowNode("dead", "dead", Tone.WARN, "3 open", "dead"))
    edges = [Edge(f"r{n}", f"t{n}", Tone.GOOD, n) for n in range(100)] + [Edge("r3", "t4", Tone.GOOD, 1)]
    picture = draw((("Routes", routes), ("Destinations", topics)), edges)
    drawn = {box.node.key: box.leads for box in picture.boxes}
    assert {key for key in drawn if key.startswith("r")} == {f"r{n}" for n in range(84, 100)}
    assert drawn["r99"] == "t99"
    assert {key for key in drawn if not key.startswith("r")} == {"dead", *(f"t{n}" for n in range(84, 99))}
    assert len(picture.lines) == 15
    assert [(text, href) for text, href, _, _ in picture.more] == [("and 84 more", "/routes"), ("and 85 more", "")]
