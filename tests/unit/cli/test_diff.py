"""`jms-bridge diff` as people and programs see it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands import finished

OLD = """\
bridge.id=b1
source.s.type=stomp
source.s.url=stomp://127.0.0.1:1
source.s.destinations=queue:orders
routes.a.in.include=msg.address==orders
routes.a.out.topic=a
routes.b.in.include=msg.address==b
routes.b.out.topic=b
"""
NEW = """\
bridge.id=b1
source.s.type=stomp
source.s.url=stomp://127.0.0.1:2
source.s.destinations=queue:orders
routes.b.in.include=msg.address==b
routes.b.out.topic=b
routes.a.in.include=msg.address==orders
routes.a.out.topic=a2
routing.headers=short
"""

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Call:
    def run(old: str, new: str, *options: str) -> tuple[int, str, str]:
        (tmp_path / "old").write_text(old)
        (tmp_path / "new").write_text(new)
        code, out, err = finished(capsys, "diff", tmp_path / "old", tmp_path / "new", *options)
        return code, out, err.replace(f"{tmp_path}/", "")

    return run


def test_differences_are_told_in_terms_of_routes(call: Call) -> None:
    code, out, err = call(OLD, NEW)
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        "> route b  was last, is before 'a'",
        "~ route a",
        "    ~ out.topic  a  ->  a2",
        "~ routing.headers  (text)  ->  short",
        "~ source s",
        "    ~ url  stomp://127.0.0.1:1  ->  stomp://127.0.0.1:2",
    ]


def test_no_difference_is_silence(call: Call) -> None:
    assert call(OLD, f"# a comment\n{OLD}") == (0, "", "")


def test_programs_get_json(call: Call) -> None:
    code, out, _ = call(OLD, NEW, "--json")
    assert code == 1
    assert json.loads(out.splitlines()[1]) == {
        "kind": "changed",
        "section": "routes",
        "name": "a",
        "key": "routes.a.out.topic",
        "old": "a",
        "new": "a2",
    }


def test_a_file_with_faults_is_compared_as_far_as_it_goes_and_the_faults_are_told_of(call: Call) -> None:
    code, out, err = call(OLD, OLD.replace("msg.address==b", "msg.address==").replace("out.topic=a", "out.topik=a"))
    assert code == 1
    assert "in.include  msg.address==b  ->  msg.address==" in out
    assert err.startswith("new has ")
    assert call(OLD, "\\u12")[0] in (1, 2)
