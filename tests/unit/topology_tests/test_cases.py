"""Files with tests of topologies: what they say, and what can be wrong with them."""

from pathlib import Path

import pytest

from engine.topology_tests import TopologyCase, read_topology_cases
from routes.errors import ConfigurationError

HEAD = "topology: shop:build\ntests:\n- input:\n"


def read(folder: Path, text: str) -> tuple[TopologyCase, ...]:
    file = folder / "t.yaml"
    file.write_text(text)
    return read_topology_cases(file)


def faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        read(folder, text)
    return [str(fault).replace(f"{folder}/", "").splitlines()[0] for fault in caught.value.faults]


def test_records_have_what_kafkas_have_and_times_in_both_spellings(tmp_path: Path) -> None:
    (case,) = read(
        tmp_path,
        HEAD + "  - {topic: a, key: 007, value: {n: 1, s: 'x'}, timestamp: 1970-01-01T00:00:01}\n"
        "  - {topic: a, key: ~, value: ~, timestamp: -1, headers: {h: text, b: {base64: /w==}, none: ~}}\n"
        "  - {topic: a, key: {id: 7}, value_base64: /w==}\n"
        "  - advance-time: 61000\n"
        "  - advance-wall-clock: 2 minutes\n"
        "  wall-clock: 1970-01-01T00:00:07\n"
        "  output: {out: []}\n",
    )
    assert (case.name, case.line, case.topology.value) == ("test 1", 3, "shop:build")
    first, second, third, time, clock = case.steps
    assert (first.topic, first.key, first.value, first.timestamp) == ("a", "007", {"n": 1, "s": "x"}, 1000)
    assert (second.key, second.value, second.timestamp) == (None, None, -1)
    assert second.headers == (("h", b"text"), ("b", b"\xff"), ("none", None))
    assert (third.key, third.value, third.timestamp) == ({"id": 7}, b"\xff", 0)
    assert (time.topic, time.timestamp, time.clock_ms) == (None, 61_000, None)
    assert (clock.topic, clock.clock_ms, case.wall_clock_ms) == (None, 120_000, 7_000)


def test_expectations_are_parts_of_records_with_their_places(tmp_path: Path) -> None:
    (case,) = read(
        tmp_path,
        HEAD + "  - {topic: a}\n  topology: other:build\n  output:\n    out:\n"
        "    - {key: k, value: {n: 5, tags: [a, b]}, timestamp: 7, headers: {h: ~}}\n"
        "  dead-letters:\n  - {reason: value, value: '{'}\n  counts: {totals: {late_records: 2}}\n",
    )
    assert case.topology.value == "other:build"
    ((topic),) = case.output
    assert [(each.name, each.value) for each in topic.records[0].members] == [
        ("key", "k"),
        ("value n", 5),
        ("value tags", ["a", "b"]),
        ("timestamp", 7),
        ("header h", None),
    ]
    assert (topic.records[0].members[1].place.line, topic.records[0].members[1].place.column) == (8, 27)
    assert [(each.name, each.value) for each in case.letters[0].members] == [("reason", "value"), ("value", "{")]
    ((node, reason, number),) = case.counts
    assert (node, reason, number.value) == ("totals", "late_records", 2)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "t.yaml: error: the file is empty (start with 'tests:')"),
        (
            "topologie: a:b\ntests: []\n",
            "t.yaml:1:1: error: unknown key 'topologie' in the file (did you mean 'topology'?)",
        ),
        ("topology: a:b\n", "t.yaml:1:1: error: there are no tests (start with 'tests:')"),
        ("tests:\n- {input: [], output: {}}\n", "t.yaml:2:3: error: the test has no 'topology' (name it at the top"),
        ("topology: a:b\ntests:\n- {output: {}}\n", "t.yaml:3:3: error: the test has no 'input'"),
        ("topology: a:b\ntests:\n- {input: []}\n", "t.yaml:3:3: error: the test expects nothing (add 'output'"),
        (HEAD + "  - {value: 1}\n  output: {}\n", "t.yaml:4:5: error: the record has no 'topic'"),
        (HEAD + "  - {topic: a, vaule: 1}\n  output: {}\n", "t.yaml:4:16: error: unknown key 'vaule' in a record of"),
        (
            HEAD + "  - {topic: a, value: [1]}\n  output: {}\n",
            "t.yaml:4:23: error: 'value' has to be a mapping, or text",
        ),
        (
            HEAD + "  - {topic: a, value: 1, value_base64: AA==}\n  output: {}\n",
            "error: the record has a 'value' already",
        ),
        (HEAD + "  - {topic: a, key_base64: '?'}\n  output: {}\n", "t.yaml:4:28: error: the text is not base64"),
        (
            HEAD + "  - {topic: a, timestamp: soon}\n  output: {}\n",
            "t.yaml:4:27: error: 'soon' is not a time: expected",
        ),
        (
            HEAD + "  - {advance-time: 1, key: k}\n  output: {}\n",
            "error: 'key' belongs to a record, not to 'advance-time'",
        ),
        (
            HEAD + "  - {advance-wall-clock: soon}\n  output: {}\n",
            "t.yaml:4:26: error: 'soon' is not a duration; write a number and a unit",
        ),
        (HEAD + "  - {topic: a}\n  output: {o: [{rows: 1}]}\n", "error: unknown key 'rows' in a record of 'o'"),
        (HEAD + "  - {topic: a}\n  output: {o: [{reason: x}]}\n", "error: unknown key 'reason' in a record of 'o'"),
        (HEAD + "  - {topic: a}\n  counts: {n: {late_records: many}}\n", "'late_records' has to be a whole number"),
        (
            "topology: a:b\ntests:\n" + "- {name: x, input: [], output: {}}\n" * 2,
            "the test in line 3 is also called 'x'",
        ),
    ],
)
def test_a_fault_is_told_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    (found,) = faults(tmp_path, text)
    assert told in found


def test_all_faults_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    found = faults(tmp_path, HEAD + "  - {topic: a, timestamp: soon}\n  - {value: 1}\n  output: {o: 5}\n")
    assert len(found) == 3


def test_a_file_that_is_missing_says_where_help_is(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be read.*jms-bridge topology test --help"):
        read_topology_cases(tmp_path / "gone.yaml")
