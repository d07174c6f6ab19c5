"""A running bridge whose topology's files change: broken ones harm nothing, good ones come into force at a reload."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.topologies.conftest import children
from tests.waiting import until

if TYPE_CHECKING:
    from tests.integration.topologies.conftest import TopologyBench

ROOT = Path(__file__).parents[3]
TOPOLOGY = """\
from engine.streams import StreamsBuilder, json
from shop_rates import RATE


def tag(record, context):
    return [{{"total": RATE}}]


def build():
    builder = StreamsBuilder("{prefix}-shop")
    clicks = builder.stream("{prefix}-clicks", value=json("page string, n int"))
    clicks{filter}.process(tag, fields="total int").to("{prefix}-processed-out")
    return builder.build()
"""


def reload(bench: TopologyBench) -> tuple[int, str]:
    """Exit code and output of the command."""
    command = [sys.executable, "-m", "engine", "reload", "--timeout", "240s", "-c", str(bench.file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    return done.returncode, done.stdout + done.stderr


def pids(bridge: subprocess.Popen[bytes]) -> dict[str, int]:
    """The process of each part, by its name."""
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_text().split("\0") for pid in children(bridge.pid)}
    return {words[words.index("--only") + 1]: pid for pid, words in commands.items() if "--only" in words}


def test_changed_files_come_into_force_as_a_whole_or_not_at_all(
    bench: TopologyBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    shop, rates = tmp_path / "shop_of_clicks.py", tmp_path / "shop_rates.py"
    good = TOPOLOGY.format(prefix=bench.prefix, filter="")
    shop.write_text(good)
    rates.write_text("RATE = 1\n")
    (tmp_path / "in").mkdir()
    with bench.file.open("a") as file:
        file.write("routing.create-topics=true\njournal.partitions=1\ntopologies.shop.mode=batch\n")
        file.write("topologies.shop.build=shop_of_clicks:build\n")
    bridge = bench.run_part()

    def totals() -> list[int]:
        return [value["total"] for _, value in bench.published("processed-out")]

    def comes(rate: int) -> None:
        """Records that are sent now are computed with this rate."""
        # Records of two partitions are read in any order.
        expected = Counter([*totals(), *[rate] * 5])
        bench.send_clicks(5)
        # The topology may have to start Spark for them, on a busy machine.
        until(lambda: len(totals()) >= bench.sent, 240, bench.log.read_text()[-3_000:])
        assert Counter(totals()) == expected, bench.log.read_text()[-3_000:]

    comes(1)
    before = pids(bridge)
    assert set(before) == {"router", "topology:shop", "source:box"}

    rates.write_text("RATE = (\n")
    code, told = reload(bench)
    assert code == 2
    assert f"{rates}:1:8: SyntaxError: '(' was never closed" in told
    assert f"on disk and not in force: {rates}" in told
    assert pids(bridge) == before
    os.kill(before["topology:shop"], signal.SIGKILL)
    comes(1)

    rates.write_text("RATE = 2\n")
    shop.write_text(TOPOLOGY.format(prefix=bench.prefix, filter='.filter("no_such_field > 1")'))
    code, told = reload(bench)
    assert code == 2
    assert "topology:shop: 'filter-1': [UNRESOLVED_COLUMN" in told
    comes(1)

    shop.write_text(good)
    code, told = reload(bench)
    assert (code, "changed: topology:shop" in told) == (0, True), told
    comes(2)
    after = pids(bridge)
    assert {**after, "topology:shop": 0} == {**before, "topology:shop": 0}
    until(lambda: all(each.startswith("ready") for each in bench.ready().values()))
    bench.stop(bridge)
    assert "Traceback" not in bench.log.read_text()
