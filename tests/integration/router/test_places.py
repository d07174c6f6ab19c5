"""The router with its checkpoint on a file system of Hadoop: each journal record is routed once, whatever happens."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.hdfs import Hdfs
from tests.integration.places import KINDS, Place
from tests.integration.router.bench import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.router.bench import Bench


@pytest.fixture(scope="module", params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place.of(request.param, tmp_path_factory.mktemp("place"))
    yield made
    made.stop()


def start(bench: Bench[Any], place: Place, mode: str = "realtime", **settings: str) -> Any:
    root = {"router.checkpoint": f"{place.uri}/{bench.journal}"}
    return bench.start(mode, **{**root, **place.settings, **settings})


@pytest.mark.kills
def test_each_record_is_routed_once_across_a_stop_a_kill_and_the_loss_of_the_local_disk(
    bench: Bench[Any], place: Place
) -> None:
    bench.send(200)
    router = start(bench, place).wait_ready()
    bench.wait_numbers(200)
    assert router.stop() == 0

    bench.send(200)
    router = start(bench, place).wait_ready()
    bench.wait_numbers(201)
    bench.send(1000)
    router.kill()
    shutil.rmtree(bench.folder / "var")

    router = start(bench, place, "batch").wait_ready()
    assert bench.wait_numbers(1400) == dict.fromkeys(range(1400), 1)
    assert router.stop() == 0
    assert not bench.checkpoint.exists()


def test_a_second_router_is_refused_here_and_shuts_out_the_first_elsewhere_and_a_lost_checkpoint_is_refused(
    bench: Bench[Any], place: Place
) -> None:
    bench.send(10)
    first = start(bench, place).wait_ready()
    bench.wait_numbers(10)

    second = start(bench, place)
    assert second.wait_end() == 3
    assert "works with the checkpoint" in second.error

    # Without an election, which keeps routers of one bridge from running at the same time.
    other = start(bench, place, **{"embedded.data": str(bench.folder / "other")}).wait_ready()
    assert first.wait_end() == 1
    assert f"the checkpoint {place.uri}/{bench.journal} has been claimed since" in first.error
    bench.send(10)
    assert bench.wait_numbers(20) == dict.fromkeys(range(20), 1)
    assert other.stop() == 0

    if place.server is not None:
        return  # The folder is removed without Hadoop.
    shutil.rmtree(f"{place.uri.removeprefix('file://')}/{bench.journal}")

    router = start(bench, place)
    assert router.wait_end() == 4
    assert f"there is none in {place.uri}/{bench.journal} any more" in router.error
    assert "set router.checkpoint to another folder" in router.error


def test_a_file_system_that_is_away_is_waited_for(bench: Bench[Any], place: Place) -> None:
    if not isinstance(place.server, Hdfs):
        pytest.skip("only HDFS keeps what it has when it is killed")
    bench.send(10)
    router = start(bench, place, interval="5s").wait_ready()
    bench.wait_numbers(10)
    place.server.kill()
    wait_for(lambda: router.state == "degraded" or router.has_ended, 60)
    assert router.state == "degraded", router.error
    bench.send(500)
    time.sleep(3)
    place.server.start()
    router.wait_ready(120)
    assert bench.wait_numbers(510) == dict.fromkeys(range(510), 1)
    assert router.stop() == 0
