"""Tests of topologies as `jms-bridge topology test` runs them, in the session that is open."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from pyspark.sql import SparkSession

from tests.commands import finished

ROOT = Path(__file__).parents[3]
MODULE = """\
from pyspark.sql import functions as F
from engine.streams import StreamsBuilder, TimeWindows, json, text


def totals():
    builder = StreamsBuilder("totals")
    orders = builder.stream("orders", value=json("customer string, amount double"))
    orders.group_by("customer").aggregate("totals", total=F.sum("amount")).to_stream().to("totals-out")
    return builder.build()


def words():
    builder = StreamsBuilder("words")
    builder.stream("lines", value=text()).flat_map("split(value, ' ')").to("words-out")
    return builder.build()


def broken():
    builder = StreamsBuilder("broken")
    builder.stream("lines", value=text()).filter("amount > 5", name="large").to("out")
    return builder.build()


def none():
    StreamsBuilder("none")
"""
Call = Callable[..., tuple[int, list[str], str]]


@pytest.fixture
def call(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    """The command over a file, in a folder with a module `tested_here`: exit code, lines of output, errors."""
    assert spark is not None
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "tested_here", raising=False)
    (tmp_path / "tested_here.py").write_text(MODULE)

    def run(text: str, *arguments: str) -> tuple[int, list[str], str]:
        (tmp_path / "topologies.test.yaml").write_text(text)
        code, out, err = finished(capsys, "topology", "test", *arguments)
        return code, out.splitlines(), err

    return run


TOTALS = "topology: tested_here:totals\ntests:\n"
ORDER = "  - {topic: orders, key: k, value: {customer: ann, amount: 5.5}, timestamp: 7, headers: {region: emea}}\n"


def test_tests_of_several_topologies_pass(call: Call) -> None:
    code, out, err = call(
        TOTALS + "- name: a total\n  input:\n" + ORDER + ORDER + "  output:\n    totals-out:\n"
        "    - {key: ann, value: {total: 5.5}, timestamp: 7, headers: {region: emea, other: ~}}\n"
        "    - {key: ann, value: {total: 11}}\n"
        "- name: words\n  topology: tested_here:words\n  input: [{topic: lines, value: to be 5 007}]\n"
        "  output: {words-out: [{value: to}, {value: be, key: ~}, {value: 5}, {value: 007}]}\n"
        "- name: a letter\n  input: [{topic: orders, key: k, value: much}]\n"
        "  output: {totals-out: []}\n  dead-letters: [{key: k, value: much, reason: value, headers: {x: ~}}]\n"
        "- name: state is empty at first\n  input:\n" + ORDER + "  output: {totals-out: [{value: {total: 5.5}}]}\n"
    )
    assert (code, err) == (0, "")
    assert out == [
        "ok    a total",
        "ok    words",
        "ok    a letter",
        "ok    state is empty at first",
        "4 tests, 0 failed",
    ]


def test_a_test_that_fails_says_what_was_expected_where_and_what_was_found(call: Call, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    text = (
        TOTALS + "- input:\n" + ORDER + "  output:\n    totals-out:\n"
        "    - {key: bob, value: {total: 5, other: x}, timestamp: 8, headers: {region: apac}}\n"
        "    - {key: eve, value: {total: 1}}\n"
        "- input:\n" + ORDER + "  - {topic: orders, key: bad, value: much}\n"
        "  output: {totals-out: []}\n  counts: {totals: {late_records: 1}}\n"
    )
    code, out, _ = call(text, "--junit", str(report))
    assert code == 1
    letter = out.pop(-5)
    assert out == [
        "FAIL  test 1",
        "      topologies.test.yaml:7:13: totals-out 1: key",
        "        expected  bob",
        "        found     ann",
        "      topologies.test.yaml:7:33: totals-out 1: value total",
        "        expected  5",
        "        found     5.5",
        "      topologies.test.yaml:7:43: totals-out 1: value other",
        "        expected  x",
        "        found     (none)",
        "      topologies.test.yaml:7:58: totals-out 1: timestamp",
        "        expected  8",
        "        found     7",
        "      topologies.test.yaml:7:79: totals-out 1: header region",
        "        expected  apac",
        "        found     emea",
        "      topologies.test.yaml:8:7: totals-out 2",
        "        expected  key eve, value total 1",
        "        found     no record",
        "FAIL  test 2",
        "      topologies.test.yaml:12:24: totals-out 1",
        "        expected  no record",
        '        found     key ann, value {"total": 5.5}, timestamp 7, header region emea',
        "      topologies.test.yaml:9:3: dead letters 1",
        "        expected  no record",
        "      topologies.test.yaml:13:35: counts of totals, late_records",
        "        expected  1",
        "        found     0",
        "2 tests, 2 failed",
    ]
    assert letter.startswith("        found     key bad, value much, timestamp 0, reason value, node ")
    code, out, _ = call(text, "--json")
    assert [json.loads(line)["passed"] for line in out] == [False, False]
    assert [case.get("line") for case in ET.fromstring(report.read_bytes()).iter("testcase")] == ["3", "9"]  # noqa: S314


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "topology: gone_from_here:build\ntests: [{input: [], output: {}}]\n",
            "topologies.test.yaml:1:11: error: 'gone_from_here:build': there is no module gone_from_here",
        ),
        (
            "topology: tested_here:total\ntests: [{input: [], output: {}}]\n",
            "topologies.test.yaml:1:11: error: 'tested_here:total': tested_here has no function total; it has ",
        ),
        (
            "topology: tested_here:none\ntests: [{input: [], output: {}}]\n",
            "topologies.test.yaml:1:11: error: 'tested_here:none' returns None, not a topology",
        ),
        (
            "topology: tested_here:broken\ntests: [{input: [{topic: lines}], output: {}}]\n",
            "topologies.test.yaml:1:11: error: 'large': ",
        ),
        (
            TOTALS + "- {input: [{topic: order}], output: {}}\n",
            "topologies.test.yaml:3:20: error: the topology does not read order (did you mean 'orders'?)",
        ),
        (
            TOTALS + "- {input: [], output: {total-out: []}}\n",
            "topologies.test.yaml:3:35: error: the topology does not write total-out (did you mean 'totals-out'?)",
        ),
        (
            TOTALS + "- {input: [], output: {totals-dead-letters: []}}\n",
            "error: totals-dead-letters is not an output here (expect its records in 'dead-letters')",
        ),
    ],
)
def test_a_fault_of_a_test_or_of_its_topology_is_exit_code_2_with_its_place(call: Call, text: str, told: str) -> None:
    code, out, err = call(text)
    assert (code, out) == (2, [])
    assert told in err
    assert "Traceback" not in err


@pytest.mark.parametrize(("name", "count"), [("order_totals", 4), ("queue_totals", 3)])
def test_the_tests_of_an_example_pass(
    name: str, count: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert spark is not None
    monkeypatch.chdir(ROOT)
    code, out, _ = finished(capsys, "topology", "test", f"examples/{name}.test.yaml")
    assert (code, out.splitlines()[-1]) == (0, f"{count} tests, 0 failed"), out
    if name == "queue_totals":
        shown = f"$ jms-bridge topology test examples/{name}.test.yaml\n{out}"
        assert shown in (ROOT / "README.md").read_text(encoding="utf-8")
