"""Commands and the status page read bare values by the schema of their source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.dead_letters.letter import DeadLetter, Filters
from engine.errors import UsageError
from engine.kafka.reader import LocatedRecord, Position
from engine.message import BodyType, Message
from engine.schemas.documents import documents_of
from routes.config import load
from routes.predicate import parse
from tests.commands import exit_code
from tests.unit.page.bridge import CONFIGURATION, Page

LINES = """\
bridge.id=b
kafka.bootstrap.servers=127.0.0.1:1
source.s.type=stomp
source.s.url=stomp://127.0.0.1:1
source.s.destinations=queue:q
source.s.schema=avro:r.avsc
source.k.type=kafka
source.k.destinations=q
source.k.schema=avro:r.avsc
routes.r.in.include=msg.body.n = 5
routes.r.in.body=avro
routes.r.out.topic=t
routing.on-soft-failure=skip
"""
BODY = b"\x0a"
SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}'
TESTS = """\
tests:
  - message: {address: queue:q, body_base64: Cg==, source: s}
    expect: {route: r}
  - message: {address: queue:q, body_base64: Cg==, source: other}
    expect: {skip: body-unreadable}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "b.properties"
    file.write_text(LINES)
    (tmp_path / "r.avsc").write_text(SCHEMA)
    (tmp_path / "body").write_bytes(BODY)
    return file


@pytest.mark.parametrize(
    ("source", "kind", "is_read"),
    [
        ("s", BodyType.BYTES, True),
        ("s", BodyType.TEXT, False),
        ("s", BodyType.MAP, False),
        ("k", BodyType.TEXT, True),
        ("k", BodyType.OBJECT, False),
        ("other", BodyType.BYTES, False),
        ("", BodyType.BYTES, False),
    ],
)
def test_the_source_and_the_kind_decide(file: Path, source: str, kind: BodyType, is_read: bool) -> None:
    record = Message(BODY, kind, {"JMSDestination": "queue:q"}, source=source).to_record()
    letter = DeadLetter(LocatedRecord(Position("d", 0, 0), 0, record))
    documents = documents_of(load(file))
    assert documents is documents_of(load(file)), "one for a configuration"
    assert Filters(where=parse("msg.body.n = 5"), documents=documents).takes(letter) == is_read


def test_explain_reads_the_body(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    given = ["explain", "--address", "queue:q", "--body-file", str(file.parent / "body"), "--config", str(file)]
    assert exit_code(*given, "--source", "s") == 0
    assert "route    r: takes it" in capfd.readouterr().out
    assert exit_code(*given) == 0
    assert "skipped and logged: body-unreadable" in capfd.readouterr().out
    assert exit_code(*given, "--source", "x") == UsageError.exit_code
    assert "--source x: there is no such source; there are s, k" in capfd.readouterr().err


def test_explain_reads_the_body_of_a_file(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    place = file.parent / "message.json"
    place.write_text(json.dumps({"address": "queue:q", "body_base64": "Cg==", "source": "s"}))
    assert exit_code("explain", "--file", str(place), "--config", str(file)) == 0
    assert "route    r: takes it" in capfd.readouterr().out


def test_route_tests_read_the_body(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (file.parent / "routes.test.yaml").write_text(TESTS)
    assert exit_code("test", "--config", str(file)) == 0
    assert "2 tests, 0 failed" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("{", "the text is not an Avro schema: "),
        ('{"type": "records"}', "it names the type 'records', which it does not define"),
        ("\N{DEGREE SIGN}", "'utf-8' codec can't decode"),
    ],
)
def test_validate_tells_what_is_wrong_with_a_file(
    file: Path, capfd: pytest.CaptureFixture[str], schema: str, why: str
) -> None:
    (file.parent / "r.avsc").write_bytes(schema.encode("latin-1"))
    assert exit_code("validate", str(file)) == 2
    told = capfd.readouterr().out
    assert f"{file}:6:17: error: the schema avro:r.avsc" in told
    assert "cannot be used: " in told
    assert why in told


def test_a_message_that_is_not_in_the_file(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file.write_text(LINES.replace("avro:r.avsc", "protobuf:r.desc#shop.Order"))
    (file.parent / "r.desc").write_bytes(b"")
    assert exit_code("validate", str(file)) == 2
    assert "no file of it has the message 'shop.Order'" in capfd.readouterr().out


def test_the_page_reads_the_body(tmp_path: Path) -> None:
    (tmp_path / "r.avsc").write_text(SCHEMA)
    lines = f"source.bare.type=kafka\nsource.bare.destinations=q\nsource.bare.schema=avro:{tmp_path / 'r.avsc'}\n"
    page = Page(tmp_path, CONFIGURATION.replace("region = 'emea'", "msg.body.n = 5") + lines)
    fields = {"seal": page.seal("/try"), "kind": "bytes", "address": "queue:orders", "body": BODY.decode()}
    for source, sentence in (("bare", " takes it"), ("", "does not take it")):
        answer = page.client.post("/try", data={**fields, "source": source}, headers={"Origin": "http://127.0.0.1"})
        assert answer.status_code == 200
        assert sentence in answer.text
