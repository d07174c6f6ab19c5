"""`jms-bridge validate` for CI systems and pre-commit."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.commands import finished

GOOD = """\
bridge.id=b1
source.s.type=stomp
source.s.url=stomp://127.0.0.1:1
source.s.destinations=queue:orders
routes.orders.in.include=msg.address==orders
routes.orders.out.topic=orders
"""
ROOT = Path(__file__).parents[3]

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.chdir(tmp_path)
    Path("good").write_text(GOOD)
    Path("a,b").write_text(GOOD.replace("bridge.id", "bridge.ide"))
    Path("warned").write_text(GOOD + "routing.headers=text\nrouting.headers=text\n")

    return lambda *arguments: finished(capsys, "validate", *arguments)


def test_several_files_are_checked_and_summed_up_one_by_one(call: Call) -> None:
    code, out, err = call("good", "warned")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "good: 1 route, 1 source; 0 errors, 0 warnings"
    assert out.splitlines()[-1] == "warned: 1 route, 1 source; 0 errors, 1 warning"
    code, out, _ = call("good", "a,b")
    assert code == 2
    assert "2 errors, 0 warnings: the bridge would not start" in out


def test_paths_are_compared_with_the_schema_of_a_route(call: Call) -> None:
    Path("order.json").write_text('{"properties": {"customer": {}}}')
    schema = "routes.orders.in.schema=json-schema:order.json\nroutes.orders.conv.key=msg.body.custmer.id\n"
    Path("near").write_text(GOOD + schema)
    code, out, _ = call("near")
    assert code == 0
    assert out.startswith(
        "near:8:33: warning: the schema of route orders has no custmer (did you mean customer?)\n"
        "    routes.orders.conv.key=msg.body.custmer.id\n"
    )


def test_annotations_of_github_have_file_line_and_column(call: Call) -> None:
    code, out, _ = call("--format", "github", "good", "a,b", "warned")
    assert code == 2
    unknown, missing, warned = sorted(out.splitlines(), key=lambda line: ("file=w" in line, "line=" not in line))
    assert unknown == "::error file=a%2Cb,line=1,col=1::unknown key 'bridge.ide' (did you mean 'bridge.id'?)"
    assert missing.startswith("::error file=a%2Cb::")
    assert warned.startswith("::warning file=warned,line=8,col=1::line 8 sets 'routing.headers' again")


def test_sarif_names_places_in_lines_and_columns(call: Call) -> None:
    code, out, _ = call("--format", "sarif", "a,b", "warned")
    (run,) = json.loads(out)["runs"]
    assert code == 2
    assert run["tool"]["driver"]["name"] == "jms-bridge"
    assert {result["level"] for result in run["results"]} == {"error", "warning"}
    placed = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    assert {"artifactLocation": {"uri": "a%2Cb"}, "region": {"startLine": 1, "startColumn": 1}} in placed
    assert json.loads(call("--format", "sarif", "good")[1])["runs"][0]["results"] == []


def test_json_is_the_same_by_either_option(call: Call) -> None:
    assert call("--json", "a,b") == call("--format", "json", "a,b")
    assert call("--json", "--format", "sarif")[0] == 64
    assert call("--format", "xml")[0] == 64


def test_the_hooks_for_pre_commit_call_commands_that_there_are() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert {hook["entry"] for hook in hooks} == {"jms-bridge validate", "jms-bridge test"}
    assert all(re.search(hook["files"], "etc/jms-bridge.properties") for hook in hooks)
    # A clone has no JVM jars, without which no wheel is made: pre-commit must not try to install one.
    assert {hook["language"] for hook in hooks} == {"system"}
