"""Topologies without Spark: when one falls behind, what its state allows, and what a change of its topics leads to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from engine.errors import SetupError, UsageError
from engine.kafka.offsets import TopicFacts
from engine.topologies.runtime.inputs import InputWatch
from engine.topologies.runtime.kept import KeptState, check_half_reset, check_identity
from engine.topologies.runtime.lag_trend import LagTrend
from engine.topologies.runtime.reset import reset_topology
from routes.config import loads

CONFIG = "bridge.id=b\nroutes.a.in.include=a='b'\nroutes.a.out.topic=t\n"
KEPT = KeptState(
    {"totals": "1"}, {"orders": 2, "pages": 2}, {"t-by-repartition": "1"}, {"totals": []}, {"totals": 7}, []
)


def reasons(lags: list[int], each_second: int = 100) -> list[str]:
    """What is said after each second with such a lag."""
    trend = LagTrend()
    return [trend.update(float(second), second * each_second, lag) for second, lag in enumerate(lags)]


def test_a_lag_that_rises_for_two_minutes_is_said_until_it_falls() -> None:
    rising = [second * 500 for second in range(200)]
    falling = [100_000 - second * 500 for second in range(200)]
    said = reasons([*rising, *falling])
    assert not any(said[:120])
    assert said[199].startswith("falls behind: ")
    assert "30,000 a minute, while 100 are processed a second" in said[199]
    assert said[210]
    assert not any(said[300:])


@pytest.mark.parametrize(
    "lags",
    [
        # A backlog that becomes smaller, bursts that are caught up with, a lag of seconds, and a long batch.
        [200_000 - second * 100 for second in range(600)],
        [(second % 60) * 1_000 for second in range(600)],
        [second * 2 for second in range(600)],
        [50_000 for _ in range(600)],
    ],
)
def test_other_lags_are_no_reason_to_worry(lags: list[int]) -> None:
    assert not any(reasons(lags))


def test_topics_with_more_partitions_fit_where_no_kept_state_depends_on_them() -> None:
    more = replace(KEPT, partitions={"orders": 4, "pages": 2})
    assert KEPT.misfits(more) == KEPT.misfits(more, ["orders"]) == ["other numbers of partitions: orders"]
    assert KEPT.misfits(more, ["pages"]) == []
    assert more.misfits(KEPT, []) == ["other numbers of partitions: orders"]
    # Tasks for partitions that are new begin with the batch after the last committed one.
    assert more.begun({}, KEPT, 17).shares_later == {2: 17, 3: 17}
    again = replace(more, partitions={"orders": 5, "pages": 2}, first_batches={"2": 17, "3": 17})
    assert again.begun({}, more, 40).shares_later == {2: 17, 3: 17, 4: 40}
    assert KEPT.begun({}, None, 0).shares_later == {}


def test_a_topic_that_is_another_one_is_refused_by_its_id() -> None:
    now = {"orders": TopicFacts(2, "new"), "pages": TopicFacts(2, "same"), "old-broker": TopicFacts(1, "")}
    check_identity("t", Path("t"), {"pages": "same", "orders": "", "old-broker": "x", "gone": "y"}, now)
    with pytest.raises(SetupError, match=r"'orders' \(Kafka's id is new and was old\)"):
        check_identity("t", Path("t"), {"orders": "old"}, now)


def test_added_partitions_are_read_anew_or_said() -> None:
    before = {"orders": TopicFacts(2, "o"), "pages": TopicFacts(2, "p")}
    watch = InputWatch(Mock(), "t", Path("t"), before, {"rates": TopicFacts(1, "r")}, {"pages": ["titles"]})
    assert (watch.restart(), watch.trouble()) == ("", "")
    watch._now = {**before, "rates": TopicFacts(1, "r"), "pages": TopicFacts(3, "p")}
    assert watch.restart() == ""
    assert watch.trouble().startswith("topic 'pages' has 3 partitions and topology 't' reads 2")
    assert "jms-bridge topology migrate MODULE:FUNCTION --drop titles" in watch.trouble()
    watch._now = {**before, "rates": TopicFacts(1, "r"), "orders": TopicFacts(4, "o")}
    assert watch.restart() == "topic 'orders' has 4 partitions in place of 2: reading all"
    assert watch.trouble() == ""
    watch._now = {**before, "rates": TopicFacts(1, "another")}
    assert watch.restart().startswith("topic 'rates' was deleted and created again")


def test_a_name_without_state_is_refused_with_those_that_have_some(tmp_path: Path) -> None:
    config = loads(f"{CONFIG}topologies.state={tmp_path}\n")
    (tmp_path / "orders-2").mkdir()
    KEPT.write(tmp_path / "orders-2")
    with pytest.raises(UsageError, match="no state of a topology 'orders', only of: orders-2"):
        list(reset_topology(config, "orders"))


def test_a_reset_takes_its_topics_from_the_state_and_can_be_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, asked, folder = loads(f"{CONFIG}topologies.state={tmp_path}\n"), [], tmp_path / "t"
    folder.mkdir()
    KEPT.write(folder)

    def refuses(_: object, name: str, topics: list[str]) -> list[str]:
        asked.append((name, topics))
        if len(asked) == 1:
            msg = "Kafka refuses"
            raise SetupError(msg)
        return []

    monkeypatch.setattr("engine.topologies.runtime.reset.delete_topology_topics", refuses)
    with pytest.raises(SetupError, match="Kafka refuses"):
        list(reset_topology(config, "t"))
    with pytest.raises(SetupError, match="was cut short: finish it with `jms-bridge topology reset t`"):
        check_half_reset(folder)
    (folder / "topology.json").unlink()
    assert list(reset_topology(config, "t")) == [f"state in {folder}"]
    assert asked == [("t", ["t-by-repartition"])] * 2
    assert not folder.exists()
