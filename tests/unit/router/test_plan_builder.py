"""Faults of plans of the router, all at once."""

from __future__ import annotations

import pytest

from engine.router import ByBranch, MessageCondition
from engine.router.plan.builder import PlanBuilder
from engine.streams import TopologyError
from routes.predicate import parse

ALWAYS = MessageCondition(parse("TRUE"))


def test_all_faults_are_told_at_once() -> None:
    builder = PlanBuilder()
    stream = builder.stream("in", name="in")
    stream.to("in", name="loop")
    stream.to(ByBranch("nowhere", {"x": "t"}), name="no-split")
    with pytest.raises(TopologyError) as error:
        builder.build()
    assert error.value.faults == (
        "'loop': topic 'in' is read by 'in': records would go round for ever",
        "'no-split': no split is named 'nowhere'",
    )


def test_a_constant_for_an_unknown_branch_is_a_fault() -> None:
    builder = PlanBuilder()
    stream, *_ = builder.stream("in", name="in").split("s").branch(ALWAYS, name="a").no_default_branch()
    stream.to(ByBranch("s", {"a": "x", "b": "y"}), name="out")
    with pytest.raises(TopologyError, match="split 's' has no branch 'b'"):
        builder.build()
