"""Bodies kept as files by the router as a process on a real Kafka: none is lost, whatever happens to the process."""

from __future__ import annotations

import json
import random
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine.claims.bodies import KeptBodies
from engine.claims.claim import CLAIM
from engine.message import ORIGIN, POSITION, BodyType, Message
from routes.properties import Property
from tests.integration.places import KINDS, Place
from tests.integration.router.bench import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.router.bench import Bench

ROUTES = """\
routes.all.in.include=color IS NOT NULL
routes.all.out.topic={red}, {blue}
routes.all.out.claim-check-above=1KiB
"""


def body(number: int) -> bytes:
    """Every second one is too large for its record; every third large one is that of another message."""
    if number % 2:
        return b"%d" % number
    return random.Random(0 if number % 3 == 0 else number).randbytes(30_000)  # noqa: S311 # the same in each run


def send(bench: Bench, count: int) -> None:
    for number in range(bench.count, bench.count + count):
        fields = {"JMSMessageID": f"ID:{number}"}
        record = Message(body(number), BodyType.BYTES, fields, {"color": Property("red")}).to_record()
        bench._put(bench._producer, bench.journal, record)
    bench.count += count
    assert bench._producer.flush(60) == 0


def published(bench: Bench, bodies: KeptBodies | None = None) -> list[tuple[str, int]]:
    """Topic and number of each record, whose body is as it was sent: none is published before its file is there."""
    bodies = bodies or KeptBodies(bench.folder / "bodies")
    found = []
    for (topic, _, _), record in bench.records(bench.red, bench.blue).items():
        number = int((record.header("jms.JMSMessageID") or "").removeprefix("ID:"))
        assert bodies.restored(record).value == body(number)
        assert (record.header(CLAIM) is None) == (number % 2 == 1)
        found.append((topic, number))
    return sorted(found)


def each_twice(bench: Bench) -> list[tuple[str, int]]:
    return sorted((topic, number) for topic in (bench.red, bench.blue) for number in range(bench.count))


@pytest.mark.kills
def test_each_body_is_published_once_across_kills_and_changes_of_mode(bench: Bench) -> None:
    settings = {"claim-check.folder": str(bench.folder / "bodies")}
    expired = bench.folder / "bodies" / "2020-01-01"
    expired.mkdir(parents=True)
    (expired / "body").write_bytes(b"x")
    send(bench, 100)
    router = bench.start("realtime", ROUTES, **settings).wait_ready()
    wait_for(lambda: len(published(bench)) == 200, 60)
    assert router.stop() == 0
    assert not expired.exists()
    for mode in ("batch", "realtime"):
        before = 2 * bench.count
        send(bench, 300)
        router = bench.start(mode, ROUTES, **settings).wait_ready()
        wait_for(lambda before=before: len(bench.records(bench.red, bench.blue)) > before, 60)
        send(bench, 1000)
        router.kill()
        published(bench)
    router = bench.start("realtime", ROUTES, **settings).wait_ready()
    wait_for(lambda: len(bench.records(bench.red, bench.blue)) >= 2 * bench.count, 120)
    assert router.stop() == 0
    assert published(bench) == each_twice(bench)
    assert bench.records(bench.dead) == {}


def test_messages_wait_for_a_folder_that_takes_no_files(bench: Bench) -> None:
    folder = bench.folder / "bodies"
    folder.write_bytes(b"a file in its place")
    send(bench, 10)
    router = bench.start("batch", ROUTES, **{"claim-check.folder": str(folder)})
    wait_for(lambda: any("takes no files" in str(line.get("detail")) for line in router.lines), 120)
    assert router.state == "degraded"
    folder.unlink()
    wait_for(lambda: len(bench.records(bench.red, bench.blue)) == 20, 90)
    assert router.stop() == 0
    assert published(bench) == each_twice(bench)
    assert bench.records(bench.dead) == {}


def test_after_a_crash_what_was_left_out_is_kept_where_it_was_then(bench: Bench) -> None:
    settings = {"claim-check.folder": str(bench.folder / "bodies")}
    send(bench, 10)
    router = bench.start("batch", ROUTES, **settings).wait_ready()
    wait_for(lambda: len(bench.records(bench.red, bench.blue)) == 20, 90)
    assert router.stop() == 0
    # As a crash leaves it that came when only the last of ten more was published, by a version without seals.
    next(bench.checkpoint.glob("*/stop.json")).unlink()
    file = next(bench.checkpoint.glob("*/start.json"))
    file.write_text(json.dumps({**json.loads(file.read_text()), "seal": ""}))
    send(bench, 10)
    (_, partition, offset), last = next(
        item for item in bench.records(bench.journal).items() if item[1].header("jms.JMSMessageID") == "ID:19"
    )
    position = f"{bench.journal}:{partition}:{offset}"
    bench.put(bench.red, replace(last, headers=(*last.headers, (ORIGIN, b"bench"), (POSITION, position.encode()))))

    router = bench.start("batch", ROUTES.replace("routes.all.out.claim-check-above=1KiB\n", "")).wait_ready(240)
    wait_for(lambda: len(bench.records(bench.red, bench.blue)) == 40, 90)
    assert router.stop() == 0
    bodies = KeptBodies(bench.folder / "bodies")
    found = [(record, bodies.restored(record).value) for record in bench.records(bench.red, bench.blue).values()]
    assert sorted(value or b"" for _, value in found) == sorted(map(body, [*range(20)] * 2))
    journal = bench.records(bench.journal).items()
    then = {r.header("jms.JMSMessageID") for at, r in journal if at[1] == partition and at[2] < offset}
    large = {f"ID:{number}" for number in range(0, 20, 2)}
    claimed = {record.header("jms.JMSMessageID") for record, _ in found if record.header(CLAIM)}
    assert claimed == large & (then | {f"ID:{number}" for number in range(10)})


@pytest.fixture(scope="module", params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place.of(request.param, tmp_path_factory.mktemp("place"))
    yield made
    made.stop()


def test_bodies_are_kept_on_a_file_system_of_hadoop(bench: Bench, place: Place) -> None:
    folder = f"{place.uri}/{bench.journal}"
    send(bench, 20)
    router = bench.start("batch", ROUTES, **place.settings, **{"claim-check.folder": folder}).wait_ready()
    wait_for(lambda: len(bench.records(bench.red, bench.blue)) == 40, 90)
    assert router.stop() == 0
    with closing(KeptBodies(folder, place.settings)) as bodies:
        assert published(bench, bodies) == each_twice(bench)
