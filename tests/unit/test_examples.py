"""The properties file to begin with: its template, each combination of its blocks, and the tour in README.md."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

from routes.config import lint_text
from tests.commands import exit_code

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "engine/cli/templates"
TEMPLATE = (TEMPLATES / "jms-bridge.properties").read_text(encoding="utf-8")
_MARK = "# The blocks below are examples"
BASE, _, REST = TEMPLATE.partition(_MARK)
BLOCKS = [block for block in REST.split("\n\n") if re.search(r"^#\S+=", block, re.MULTILINE)]


def settings(block: str) -> str:
    return "".join(f"{line[1:]}\n" for line in block.splitlines() if re.match(r"#[\w.-]+=", line))


def keys(text: str) -> list[str]:
    return [line.partition("=")[0] for line in text.splitlines() if re.match(r"[\w.-]+=", line)]


def test_the_template_has_the_blocks() -> None:
    assert len(BLOCKS) == 7


@pytest.mark.parametrize("size", range(len(BLOCKS) + 1))
def test_every_combination_of_blocks_is_free_of_faults_and_overrides_nothing(size: int) -> None:
    for chosen in combinations(BLOCKS, size):
        text = BASE + "".join(map(settings, chosen))
        assert [str(fault) for fault in lint_text(text, env={}).faults] == []
        assert len(set(keys(text))) == len(keys(text))


def test_the_tests_of_routes_pass_with_all_blocks_and_after_the_tour(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = re.search(r"Change `([\w.-]+)` to `(\w+)` in `jms-bridge.properties`", (ROOT / "README.md").read_text())
    assert changed is not None
    after, count = re.subn(rf"(?m)^{re.escape(changed[1])}=.*$", f"{changed[1]}={changed[2]}", BASE)
    assert count == 1
    file = tmp_path / "jms-bridge.properties"
    file.write_text(after + "".join(map(settings, BLOCKS)))
    (tmp_path / "routes.test.yaml").write_bytes((TEMPLATES / "routes.test.yaml").read_bytes())
    assert exit_code("test", "-c", str(file)) == 0, capsys.readouterr().out
