"""State of a running bridge's topologies, asked over HTTP while they process, in real time and in batches."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
from typing import TYPE_CHECKING, Any

import pytest

from engine.topologies.state import open_state
from routes.config import load
from tests.integration.topologies.test_reloaded_code import pids
from tests.waiting import until

if TYPE_CHECKING:
    from tests.integration.topologies.conftest import TopologyBench


def total(bench: TopologyBench, state: str) -> int | None:
    """Sum of all clicks in the rows of a state, which are read in pages; None while it is away."""
    found, after = 0, ""
    while True:
        try:
            answer = json.loads(bench.page(f"/api/topologies/{state}&limit=7&after={after}"))
        except urllib.error.URLError as error:
            # It may be starting, and then nothing listens there or the topology does not answer.
            code = error.code if isinstance(error, urllib.error.HTTPError) else 503
            if code not in (404, 503):
                raise
            return None
        assert answer["live"] is ("live=false" not in state)
        found += sum(row["total"] for row in answer["rows"])
        if (after := answer["next"]) is None:
            return found


def asked(bench: TopologyBench, *arguments: str) -> list[dict[str, Any]]:
    """Rows that the command prints."""
    command = [sys.executable, "-m", "engine", "topology", "state", *arguments, "-c", str(bench.file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=bench._environment())
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.kills
@pytest.mark.parametrize(("mode", "interval"), [("realtime", "60m"), ("batch", "1s")])
def test_the_state_is_asked_while_records_are_processed(
    bench: TopologyBench, monkeypatch: pytest.MonkeyPatch, mode: str, interval: str
) -> None:
    with bench.file.open("a") as file:
        file.write("routing.create-topics=true\njournal.partitions=1\n")
        file.write(f"topologies.clicks.build={bench.function('counts')}\n")
        file.write(f"topologies.clicks.mode={mode}\ntopologies.clicks.interval={interval}\n")
    (bench.folder / "in").mkdir()
    monkeypatch.setenv("TOPOLOGY_PREFIX", bench.prefix)
    bench.send_pages()
    bridge = bench.run_part()

    def comes(state: str) -> None:
        until(lambda: total(bench, state) == sum(range(bench.sent + 1)), 240, state)

    live = "clicks/state/counts?live=true"
    for _ in range(3):
        bench.send_clicks(50)
        comes(live)
    assert json.loads(bench.page("/api/topologies/clicks/state"))["nodes"] == [
        {"node": "counts", "operator": "aggregate"}
    ]
    found = json.loads(bench.page("/api/topologies/clicks/state/counts?key=p3"))
    assert {row["key"] for row in found["rows"]} == {"p3"}
    assert sum(found["positions"][f"{bench.prefix}-clicks"].values()) == bench.sent
    if mode == "batch":
        comes("clicks/state/counts?live=false")
    with open_state(load(bench.file), bench.function("counts"), "counts", live=True) as state:
        assert [row["key"] for row in state.rows("p3")] == ["p3"] * len(found["rows"])
    assert asked(bench, bench.function("counts"), "counts", "--key", "p3", "--live") == found["rows"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        bench.page("/api/topologies/clicks/state/counts?key=p3&prefix=p")
    assert (refused.value.code, b"one key does not go with" in refused.value.read()) == (400, True)

    os.kill(pids(bridge)["topology:clicks"], signal.SIGKILL)
    bench.send_clicks(50)
    comes(live)
    bench.comes_to("counts-out", bench.sent)
    bench.stop(bridge)
    bench.check("counts-out")
