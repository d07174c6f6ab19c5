"""State of a changed topology: what fits, what is moved, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.errors import SetupError, UsageError
from engine.streams import Program, StreamsBuilder, json, plan
from engine.topologies.runtime.kept import KeptState
from engine.topologies.runtime.migrate import Migration

PARTITIONS = {"in": 2, "people": 2}


def program(
    spark: SparkSession,
    aggregates: Mapping[str, str],
    *,
    fields: str = "n int",
    by: str = "by-k",
    group: str = "teams",
    join: str = "joined",
) -> Program:
    """Aggregates behind one internal topic, a table by its groups, and a join by a foreign key."""
    builder = StreamsBuilder("moving")
    numbers = builder.stream("in", value=json(fields)).select_key("n").repartition(name=by)
    for name, column in aggregates.items():
        numbers.group_by_key().aggregate(name, value=column).to("out")
    people = builder.table("people", value=json("team string, boss string"), name="people")
    people.group_by("team").count(name=group).to("out")
    people.join(people, on="boss", prefix="boss_", name=join).to("out")
    return plan(builder.build(), spark)


def state(made: Program, before: KeptState | None = None) -> KeptState:
    return KeptState.of(made, PARTITIONS, before)


@pytest.fixture(scope="module")
def first(spark: SparkSession) -> KeptState:
    return state(program(spark, {"sums": "sum(n)", "most": "max(n)"}))


def test_a_renamed_node_keeps_its_place_and_a_dropped_one_gets_another(
    spark: SparkSession, first: KeptState, tmp_path: Path
) -> None:
    second = program(spark, {"totals": "sum(n)", "most": "min(n)", "sums": "avg(n)"})
    migration = Migration.of(tmp_path, first, second, {"sums": "totals"}, ["most"])
    assert migration.steps == (
        "rename sums to totals",
        "keep people",
        "keep teams",
        "keep joined",
        "drop the state of most",
        "begin most with empty state",
        "begin sums with empty state",
    )
    migration.run()
    kept = KeptState.read(tmp_path)
    assert kept is not None
    now = state(second, kept)
    assert kept.misfits(now) == []
    assert now.stores["totals"] == first.stores["sums"]
    assert now.dropped == [first.stores["most"]]
    same = ("people", "teams", "joined", "joined (partner)")
    assert [now.stores[name] for name in same] == [first.stores[name] for name in same]
    assert len({*now.stores.values(), *now.dropped}) == len(now.stores) + 1

    # No number is used again, whatever returns.
    third = program(spark, {"sums": "sum(n)", "most": "max(n)"})
    Migration.of(tmp_path, now, third, {}, ["totals", "most", "sums"]).run()
    kept = KeptState.read(tmp_path)
    assert kept is not None
    again = state(third, kept)
    assert not {again.stores["sums"], again.stores["most"]} & {*now.stores.values(), *now.dropped}
    assert {now.stores[name] for name in ("totals", "most", "sums")} < set(again.dropped)


def test_names_can_be_exchanged(spark: SparkSession, first: KeptState, tmp_path: Path) -> None:
    second = program(spark, {"most": "sum(n)", "sums": "max(n)"})
    Migration.of(tmp_path, first, second, {"sums": "most", "most": "sums"}, []).run()
    kept = KeptState.read(tmp_path)
    assert kept is not None
    assert kept.stores["most"] == first.stores["sums"]
    assert kept.stores["sums"] == first.stores["most"]
    assert kept.dropped == []


def test_a_join_by_a_foreign_key_is_dropped_with_all_its_entries(
    spark: SparkSession, first: KeptState, tmp_path: Path
) -> None:
    second = program(spark, {"sums": "sum(n)", "most": "max(n)"}, join="bosses")
    Migration.of(tmp_path, first, second, {}, ["joined"]).run()
    kept = KeptState.read(tmp_path)
    assert kept is not None
    assert state(second, kept).dropped == sorted(first.stores[name] for name in ("joined", "joined (partner)"))


def test_what_would_not_fit_is_refused(spark: SparkSession, first: KeptState, tmp_path: Path) -> None:
    changed = program(spark, {"totals": "sum(n)", "most": "min(n)"}, group="groups")
    kept = {"sums": "totals"}
    refused: list[tuple[Program, dict[str, str], list[str], str]] = [
        (changed, kept, ["teams"], r"would still not fit the topology \(changed: most\)"),
        (changed, {}, ["most", "teams"], r"\(gone or renamed: sums\): use --drop NODE or --rename OLD=NEW"),
        (changed, {"sums": "most"}, ["most", "teams"], r"\(changed: most\)"),
        (changed, {"sum": "totals"}, [], "no state of sum; there is state of: sums, most, people, teams, joined"),
        (changed, {"sums": "all"}, [], "--rename sums=all: the topology has no node 'all'"),
        (changed, kept, ["sums"], "sums: to be renamed and dropped"),
        (changed, {"sums": "most"}, [], "--rename sums=most: another node keeps its state under this name"),
        (changed, {"teams": "groups"}, [], "internal topics of the node bear its name.* or use --drop teams"),
    ]
    other_topic = program(spark, {"sums": "sum(n)", "most": "max(n)"}, by="by-n")
    refused.append(
        (other_topic, {}, [], r"other internal topics are read by: sums, most\).*repartition\(\) its former")
    )
    wider = program(spark, {"sums": "sum(n)", "most": "max(n)"}, fields="n int, m int")
    both = ["sums", "most"]
    refused.append((wider, {}, both, r"\(other fields in internal topics: moving-by-k-repartition\).*or a new one"))
    for now, renames, drops, expected in refused:
        with pytest.raises(UsageError, match=expected):
            Migration.of(tmp_path, first, now, renames, drops)
    assert list(tmp_path.iterdir()) == []
    wider = program(spark, {"sums": "sum(n)", "most": "max(n)"}, fields="n int, m int", by="by-wider")
    assert Migration.of(tmp_path, first, wider, {}, both).steps[-1] == "begin most with empty state"


def test_a_note_that_is_damaged_or_missing_is_an_error(first: KeptState, tmp_path: Path) -> None:
    assert KeptState.read(tmp_path) is None
    first.write(tmp_path)
    assert KeptState.read(tmp_path) == first
    for damage in ("{", "{}", "[]"):
        (tmp_path / "topology.json").write_text(damage)
        with pytest.raises(SetupError, match="is damaged: restore it"):
            KeptState.read(tmp_path)
    (tmp_path / "topology.json").unlink()
    (tmp_path / "spark").mkdir()
    with pytest.raises(SetupError, match="is missing, beside a checkpoint: restore it"):
        KeptState.read(tmp_path)
