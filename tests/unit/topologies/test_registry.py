"""Plans of topologies whose pinned schema versions do not fit any more."""

from unittest.mock import Mock

import pytest

from engine.schemas.section import SchemaConfig
from engine.topologies.library.topology import TopologyError
from engine.topologies.runtime import registry


def test_a_plan_without_the_pinned_versions_is_otherwise_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def plan(*given: object, **settings: object) -> str:
        calls.append((given, settings))
        if settings["pinned"]:
            raise TopologyError(["no such field"])
        return "a plan"

    monkeypatch.setattr(registry, "plan", plan)
    topology, spark = Mock(), Mock()
    made: object = registry.planned(SchemaConfig(), topology, spark, "stop", 3.0, {"orders-value": 1})
    assert made == "a plan"
    (first, pinned), (second, latest) = calls
    assert first == second == (topology, spark)
    assert {**pinned, "pinned": {}} == {**latest, "pinned": {}}
    assert latest == {"on_failure": "stop", "function_timeout_seconds": 3.0, "registry": None, "pinned": {}}
