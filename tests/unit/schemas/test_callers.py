"""Commands and the status page read bodies with a schema by the registry of the configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.dead_letters.letter import DeadLetter, Filters
from engine.errors import UnreachableError
from engine.kafka.reader import LocatedRecord, Position
from engine.message import BodyType, Message
from engine.schemas.documents import documents_of
from routes.config import load
from routes.predicate import parse
from tests.commands import exit_code
from tests.registry_server import RegistryServer, registry_server
from tests.unit.page.bridge import CONFIGURATION, Page

LINES = """\
bridge.id=b
kafka.bootstrap.servers=127.0.0.1:1
routes.r.in.include=msg.body.n = 5
routes.r.in.body=avro
routes.r.out.topic=t
schema.copies=
"""
BODY = b"\0\0\0\0\7\x0a"
SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}'
TESTS = """\
tests:
  - message: {address: queue:q, body_base64: AAAAAAcK}
    expect: {route: r}
"""


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with registry_server() as server:
        server.answers["/schemas/ids/7"] = [(200, {"schema": SCHEMA})]
        yield server


@pytest.fixture
def file(tmp_path: Path, server: RegistryServer) -> Path:
    file = tmp_path / "b.properties"
    lines = LINES.replace("schema.copies=", f"schema.copies={tmp_path / 'copies'}")
    file.write_text(f"{lines}schema.registry.url={server.url}\n")
    (tmp_path / "body").write_bytes(BODY)
    return file


def test_explain_reads_the_body(file: Path, capfd: pytest.CaptureFixture[str], server: RegistryServer) -> None:
    given = ["explain", "--address", "queue:q", "--body-file", str(file.parent / "body"), "--config", str(file)]
    assert exit_code(*given) == 0
    assert "route    r: takes it" in capfd.readouterr().out
    server.fault = (503, {})
    assert exit_code(*given) == 0, "the copy is used"


def test_explain_ends_with_a_line_while_the_registry_is_away(
    file: Path, capfd: pytest.CaptureFixture[str], server: RegistryServer
) -> None:
    server.fault = (503, {})
    given = ["explain", "--address", "queue:q", "--body-file", str(file.parent / "body"), "--config", str(file)]
    assert exit_code(*given) == UnreachableError.exit_code
    assert "the schema registry is away" in capfd.readouterr().err


def test_route_tests_read_the_body(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (file.parent / "routes.test.yaml").write_text(TESTS)
    assert exit_code("test", "--config", str(file)) == 0
    assert "1 test, 0 failed" in capfd.readouterr().out


def test_filters_of_dead_letters_read_the_body(file: Path) -> None:
    record = Message(BODY, BodyType.BYTES, {"JMSDestination": "queue:q"}, {}).to_record()
    letter = DeadLetter(LocatedRecord(Position("d", 0, 0), 0, record))
    documents = documents_of(load(file))
    assert documents is documents_of(load(file)), "one for a configuration"
    assert Filters(where=parse("msg.body.n = 5"), documents=documents).takes(letter)
    assert not Filters(where=parse("msg.body.n = 5")).takes(letter)


def test_the_page_says_that_the_registry_is_away(tmp_path: Path, server: RegistryServer) -> None:
    lines = f"schema.registry.url={server.url}\nschema.copies={tmp_path / 'copies'}\n"
    page = Page(tmp_path, CONFIGURATION.replace("region = 'emea'", "msg.body.n = 5") + lines)
    fields = {"seal": page.seal("/try"), "kind": "bytes", "address": "queue:orders", "body": BODY.decode()}
    server.fault = (503, {})
    answer = page.client.post("/try", data=fields, headers={"Origin": "http://127.0.0.1"})
    assert answer.status_code == 503
    assert "the schema registry is away" in answer.text
    server.fault = None
    answer = page.client.post("/try", data=fields, headers={"Origin": "http://127.0.0.1"})
    assert answer.status_code == 200
    assert "takes it" in answer.text
