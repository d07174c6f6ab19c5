"""Files that routes and sources name as schemas: which of them `jms-bridge validate` refuses, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.schemas.file_checks import schema_files
from routes.config import lint_text

if TYPE_CHECKING:
    from pathlib import Path

_FILE = """\
bridge.id=b
schema.registry.url=http://127.0.0.1:1
source.s.type=stomp
source.s.url=stomp://127.0.0.1:1
source.s.destinations=queue:a
routes.r.in.include=TRUE
routes.r.out.topic=out
"""
_GOOD = '{"type": "record", "name": "R", "fields": []}'


@pytest.mark.parametrize("key", ["source.s.schema", "routes.r.in.schema", "routes.r.out.schema"])
@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("avro:a.avsc", '{"type": "recor"}', "it names the type 'recor', which it does not define"),
        ("avro:a.avsc", "no JSON", "the text is not an Avro schema: Expecting value"),
        ("protobuf:a.desc", "text", "it is not a FileDescriptorSet"),
    ],
)
def test_a_file_that_is_no_schema_is_refused_where_it_is_named(
    tmp_path: Path, key: str, name: str, content: str, why: str
) -> None:
    (tmp_path / name.partition(":")[2]).write_text(content)
    (fault,) = lint_text(f"{_FILE}{key}={name}\n", tmp_path, {}, [schema_files]).errors
    assert (fault.line, fault.column) == (8, len(key) + 2)
    assert f"the schema {name} cannot be used: " in fault.message
    assert why in fault.message


def test_a_json_schema_is_refused_as_well(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"type": 5}')
    (fault,) = lint_text(f"{_FILE}routes.r.in.schema=json-schema:a.json\n", tmp_path, {}, [schema_files]).errors
    assert "the text is not a JSON Schema: $.type does not fit 'anyOf'" in fault.message


def test_a_schema_is_accepted_and_a_missing_file_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "a.avsc").write_text(_GOOD)
    lines = "source.s.schema=avro:a.avsc\nroutes.r.in.schema=avro:a.avsc\nroutes.r.out.schema=avro:gone.avsc\n"
    (fault,) = lint_text(_FILE + lines, tmp_path, {}, [schema_files]).errors
    assert fault.line == 10
