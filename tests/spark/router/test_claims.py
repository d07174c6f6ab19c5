"""Bodies that are larger than their route has in records leave as files, with a claim on them in the record."""

from __future__ import annotations

import gzip
import hashlib
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from engine.claims.bodies import BodyLostError, KeptBodies
from engine.claims.claim import CLAIM, Claim
from engine.errors import UnreachableError
from engine.explain import explain
from engine.message import BODY, DESTINATION, POSITION, ROUTE, BodyType, Message, Record
from engine.router import route
from engine.router.expired_bodies import remove_expired
from engine.router.plan.records import records_frame
from engine.router.query_failures import error_failure
from engine.spark.hadoop_path import StorageUnavailableError, opened
from engine.topologies.library.row import JvmFunctions
from routes.config import loads
from tests.spark.router.conftest import HEAD
from tests.spark.router.harness import Result, Router

POLICY = "routing.on-soft-failure=dead-letter\n"
ROUTES = """\
claim-check.folder={}
routes.large.in.include=msg.address==large
routes.large.out.topic=large
routes.large.out.claim-check-above=1KiB
routes.rest.in.include=TRUE
routes.rest.out.topic=rest
"""
JSON = b'{"a":"secret","b":"%b"}'
LARGE = JSON % (b"x" * 3000)
MASKED = LARGE.replace(b"secret", b"***")


def message(body: bytes, to: str = "queue:large", kind: BodyType = BodyType.TEXT) -> Message:
    return Message(body, kind, {"JMSDestination": to, "JMSMessageID": "ID:1"})


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def claim(result: Result) -> Claim:
    found = Claim.of(result.record.headers)
    assert found is not None
    return found


def kept(result: Result, folder: Path) -> bytes:
    """The body that a record has by its claim."""
    assert result.record.value == b""
    body = KeptBodies(folder).restored(result.record).value
    assert body is not None
    return body


def test_only_large_bodies_of_the_route_leave_as_files(router: Router, tmp_path: Path) -> None:
    given = [message(b"x" * 1025), message(b"y" * 1024), message(b"z" * 5000, to="queue:x")]
    large, small, other = router(ROUTES.format(tmp_path), given)
    digest = hashlib.sha256(b"x" * 1025).hexdigest()
    day = datetime.now(UTC).date().isoformat()
    assert (large.topic, large.record.value, large.outcome) == ("large", b"", "routed")
    assert large.header(CLAIM) == f"{day}/{digest} 1025"
    assert [name for name, _ in large.record.headers][-3:] == ["jmsbridge.origin", POSITION, CLAIM]
    assert (large.header(BODY), kept(large, tmp_path)) == ("text", b"x" * 1025)
    assert (small.record.value, small.header(CLAIM)) == (b"y" * 1024, None)
    assert (other.record.value, other.header(CLAIM)) == (b"z" * 5000, None)
    assert files(tmp_path) == {f"{day}/{digest}": b"x" * 1025}


def test_a_message_that_is_routed_again_has_the_same_file(router: Router, tmp_path: Path) -> None:
    [first] = router(ROUTES.format(tmp_path), [message(LARGE)])
    [path] = (path for path in tmp_path.rglob("*") if path.is_file())
    node = path.stat().st_ino
    [again] = router(ROUTES.format(tmp_path), [message(LARGE)])
    assert claim(again) == claim(first)
    assert path.stat().st_ino == node
    # What a crash of the machine left of the file is not taken for it.
    path.write_bytes(LARGE[:100])
    [mended] = router(ROUTES.format(tmp_path), [message(LARGE)])
    assert kept(mended, tmp_path) == LARGE


def test_the_rights_of_the_folder_count_for_the_files(router: Router, tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    router(ROUTES.format(tmp_path), [message(LARGE)])
    [day] = tmp_path.iterdir()
    [file] = day.iterdir()
    assert [each.stat().st_mode & 0o777 for each in (day, file)] == [0o750, 0o640]


def test_the_bridge_makes_a_folder_for_itself_alone(router: Router, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "bodies"
    [result] = router(ROUTES.format(folder), [message(LARGE)])
    assert kept(result, folder) == LARGE
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_claim_is_on_the_masked_and_converted_body(router: Router, tmp_path: Path) -> None:
    text = POLICY + ROUTES.format(tmp_path) + "routes.large.out.mask=msg.body.a\n"
    masked, unread, small = router(text, [message(LARGE), message(b"x" * 5000), message(JSON)])
    assert kept(masked, tmp_path) == MASKED
    assert (unread.outcome, unread.record.value) == ("dead-letter.body-unreadable", b"x" * 5000)
    assert small.record.value == JSON.replace(b"secret", b"***")
    [packed] = router(text + "routes.large.out.convert=gzip\n", [message(LARGE)])
    assert packed.record.value is not None
    assert (gzip.decompress(packed.record.value), packed.header(BODY)) == (MASKED, "bytes")
    zeros = gzip.compress(bytes(2000))
    [unpacked] = router(ROUTES.format(tmp_path) + "routes.large.out.convert=gunzip\n", [message(zeros)])
    assert kept(unpacked, tmp_path) == bytes(2000)
    assert len(files(tmp_path)) == 2


def test_the_size_of_a_record_is_that_without_the_body(router: Router, tmp_path: Path) -> None:
    text = POLICY + ROUTES.format(tmp_path)
    given = [message(b"x" * 50_000), message(b"x" * 50_000, to="queue:x")]
    fits, too_large = router(text, given, limits={"large": 10_000, "rest": 10_000})
    assert (fits.outcome, kept(fits, tmp_path)) == ("routed", b"x" * 50_000)
    assert too_large.outcome == "dead-letter.too-large"


def test_a_record_for_a_sink_has_the_claim_before_its_destination(router: Router, tmp_path: Path) -> None:
    text = ROUTES.format(tmp_path).replace("out.topic=large", "out.topic=n:a, jms:queue/b, large")
    results = router(text, [message(LARGE)])
    assert [result.topic for result in results] == ["jms-bridge.sink.n", "jms-bridge.sink.jms", "large"]
    assert [kept(result, tmp_path) for result in results] == [LARGE] * 3
    names = [name for name, _ in results[0].record.headers]
    assert names[names.index(POSITION) + 1 : names.index(ROUTE) + 1] == [CLAIM, DESTINATION, ROUTE]
    assert len(files(tmp_path)) == 1


def test_a_claim_that_came_with_a_message_does_not_count(router: Router, tmp_path: Path) -> None:
    """Whoever writes to the journal cannot have a body delivered that others sent."""
    [others] = router(ROUTES.format(tmp_path), [message(LARGE)])
    record = message(b"").to_record()
    more = ((POSITION, b"journal:0:7"), (CLAIM, str(claim(others)).encode()))
    [result] = router(ROUTES.format(tmp_path), [Record(record.key, record.value, (*record.headers, *more))])
    assert result.header(CLAIM) == str(claim(others))
    assert KeptBodies(tmp_path).restored(result.record).value == b""


def test_a_message_without_a_body_has_no_file(router: Router, tmp_path: Path) -> None:
    fields = {"JMSDestination": "queue:large", "JMSMessageID": "ID:1"}
    [result] = router(ROUTES.format(tmp_path), [Message(headers=fields, has_null_value=True)])
    assert (result.record.value, result.header(CLAIM)) == (None, None)


def test_small_messages_are_published_by_reference(spark: SparkSession, tmp_path: Path) -> None:
    config = loads(HEAD + ROUTES.format(tmp_path), base=tmp_path)
    records = [message(body).to_record() for body in (LARGE, b"small")]
    rows = route(records_frame(spark, {"journal": records}), config).frame.collect()
    large, small = sorted(rows, key=lambda row: int(row.journal_offset))
    assert (bytes(large.new_value), large.kept & 1) == (b"", 0)
    assert (small.new_value, small.kept & 1) == (None, 1)


def test_a_folder_that_takes_no_files_is_waited_for(router: Router, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(Exception, match=r"claim-check\.folder") as thrown:
        router(ROUTES.format(tmp_path / "file" / "bodies"), [message(LARGE)])
    assert isinstance(error_failure(thrown.value), StorageUnavailableError)


def test_a_file_is_written_as_a_whole_by_tasks_at_once(spark: SparkSession, tmp_path: Path) -> None:
    bodies = spark.range(0, 64, 1, 4).select(F.repeat(F.lit("0123456789"), 20_000).cast("binary").alias("body"))
    claims = bodies.select(JvmFunctions(spark).call(f"claim:{tmp_path}", F.col("body")).alias("claim")).distinct()
    expected = Claim.on(b"0123456789" * 20_000)
    assert [row.claim for row in claims.collect()] == [str(expected)]
    assert files(tmp_path) == {expected.file: b"0123456789" * 20_000}


def test_a_file_system_of_hadoop_has_the_same_files(router: Router, tmp_path: Path) -> None:
    [result] = router(ROUTES.format(f"file://{tmp_path}"), [message(LARGE)])
    file = tmp_path / claim(result).file
    assert file.read_bytes() == LARGE
    with closing(KeptBodies(f"file://{tmp_path}", {"spark.hadoop.fs.file.impl": "jmsbridge.LocalFiles"})) as bodies:
        assert bodies.restored(result.record).value == LARGE
        file.with_name(f".{file.name}.crc").unlink()
        file.write_bytes(LARGE[1:])
        with pytest.raises(BodyLostError, match="its body was altered"):
            bodies.restored(result.record)
        file.unlink()
        with pytest.raises(BodyLostError, match="its body is gone"):
            bodies.restored(result.record)
        # The process that reads starts again when it has ended.
        process = bodies._reader and bodies._reader._process
        assert process is not None
        process.kill()
        process.wait()
        file.write_bytes(LARGE)
        assert bodies.restored(result.record).value == LARGE
        tmp_path.rename(tmp_path.with_name("away"))
        with pytest.raises(UnreachableError, match="there is no folder file://"):
            bodies.restored(result.record)
    assert bodies._reader is not None
    assert bodies._reader._process is None


def test_expired_days_are_removed_from_a_file_system_of_hadoop(spark: SparkSession, tmp_path: Path) -> None:
    for day in ("2026-11-25", "2026-11-26", "orders"):
        (tmp_path / day).mkdir()
        (tmp_path / day / "body").write_bytes(b"x")
    now = datetime(2026, 11, 28, 12, tzinfo=UTC)
    assert list(remove_expired(opened(spark, f"file://{tmp_path}"), 2 * 86_400.0, now)) == ["2026-11-25"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2026-11-26", "orders"]
    assert list(remove_expired(opened(spark, f"file://{tmp_path}/none"), 86_400.0, now)) == []


def test_claims_are_explained_as_they_leave(router: Router, tmp_path: Path) -> None:
    text = POLICY + ROUTES.format(tmp_path) + "routes.large.out.mask=msg.body.a\n"
    given = [message(each) for each in (LARGE, JSON, b"x" * 3000)] + [message(LARGE, to="queue:x")]
    config = loads(HEAD + text, base=tmp_path)
    for number, (each, result) in enumerate(zip(given, router(text, given), strict=True)):
        said = explain(each.to_record(), config, position=f"journal:0:{number}")
        assert said.topic == result.topic
        if result.outcome == "routed":
            assert (said.headers, said.claim) == (result.record.headers, Claim.of(result.record.headers))
    said = explain(given[0].to_record(), config)
    assert (said.changed_body, said.claim) == (MASKED, Claim.on(MASKED))
