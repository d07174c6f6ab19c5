"""A topology with its state on a file system of Hadoop goes on after a kill, without the disk that it ran on."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.integration.places import KINDS, Place
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.topologies.conftest import TopologyBench


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path, bench: TopologyBench) -> Iterator[Place]:
    folder = tmp_path / "place"
    folder.mkdir()
    made = Place.of(request.param, folder)
    settings = {"topologies.state": made.uri, **made.settings}
    with bench.file.open("a") as file:
        file.writelines(f"{name}={value}\n" for name, value in settings.items())
    yield made
    made.stop()


@pytest.mark.kills
def test_a_topology_goes_on_after_a_kill_and_the_loss_of_the_local_disk(bench: TopologyBench, place: Place) -> None:
    options = ("--mode", "realtime", "--interval", "5s")
    bench.send_pages()
    killed = bench.start_alone("counts", *options)
    bench.send_clicks(1_000)
    bench.comes_to("counts-out", 1_000)
    # Some are in the committed state, and some come again.
    until(lambda: totals(bench) > 0, 180, "a commit of the state")
    bench.send_clicks(1_000)
    bench.comes_to("counts-out", 1_500)
    bench.kill(killed)
    shutil.rmtree(bench.folder / "var")

    stopped = bench.start_alone("counts", *options)
    bench.send_clicks(500)
    bench.comes_to("counts-out", 2_500)
    until(lambda: totals(bench) == 2_500, 180, "all clicks in the committed state")
    assert "works with the checkpoint" in bench.command("reset", f"{bench.prefix}-counts", "--yes")
    bench.stop(stopped)
    bench.check("counts-out")
    assert not (bench.folder / "var" / "topologies").exists()

    gone = bench.command("reset", f"{bench.prefix}-counts", "--yes")
    assert f"state in {place.uri}/{bench.prefix}-counts" in gone
    assert "the topology has not run yet" in bench.command("state", bench.function("counts"), "counts")


def totals(bench: TopologyBench) -> int:
    """How many clicks the committed state has counted."""
    lines = bench.command("state", bench.function("counts"), "counts", "--limit", "100000").splitlines()
    return sum(json.loads(line)["times"] for line in lines if line.startswith("{"))
