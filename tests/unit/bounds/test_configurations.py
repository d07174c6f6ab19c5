"""Ten times what docs/security.md allows for files and predicates, and the largest files of operators."""

from __future__ import annotations

from pathlib import Path

import pytest

from routes.config import lint_text, loads
from routes.config.reader import read
from routes.errors import PredicateError
from routes.predicate import parse
from routes.predicate.check import MAX_OPERATORS
from routes.predicate.parser import MAX_CHARACTERS, MAX_DEPTH
from tests.unit.bounds.test_received_bytes import MIB, within

START = (
    "bridge.id=b\nsource.s.type=stomp\nsource.s.destinations=queue:q\nroutes.r.in.include=TRUE\nroutes.r.out.topic=t\n"
)


def test_a_properties_file_of_40_mib_is_a_fault(tmp_path: Path) -> None:
    file = tmp_path / "a.properties"
    with file.open("wb") as large:
        large.truncate(10 * 4 * MIB)
    with within(1):
        found = read(file)
    told = f"{file}: error: the file has more than 4 MiB (it is hardly a configuration)"
    assert [str(fault) for fault in found.faults] == [told]
    file.write_text("a=1\n")
    assert [entry.key for entry in read(file).entries] == ["a"]


def test_a_value_from_a_file_of_10_mib_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "user").write_bytes(b"u" * 10 * MIB)
    text = f"{START}source.s.username=${{file:user}}\nsource.s.password=p\n"
    with within(1):
        (fault,) = lint_text(text, tmp_path, env={}).errors
    assert fault.message == "the file 'user' has more than 1 MiB"
    (tmp_path / "user").write_text("u")
    assert not lint_text(text, tmp_path, env={}).errors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a" * 10 * MAX_CHARACTERS, "the predicate has 10,000,000 characters"),
        ("a = 1 AND " * MAX_CHARACTERS + "a = 1", "the predicate has 10,000,005 characters"),
        ("NOT " * 10 * MAX_DEPTH + "a", "operators are nested more than 50 deep here"),
        ("(a = 1 OR " * 10 * MAX_DEPTH + "a" + ")" * 10 * MAX_DEPTH, "operators are nested more than 50 deep here"),
        ("NOT " * 1000 * MAX_DEPTH + "a", "operators are nested more than 50 deep here"),
        ("a" + " + 1" * 10 * MAX_OPERATORS + " = 1", "operators are nested more than 50 deep here"),
        (f"a{' + 1' * 9} = b{' + 1' * 9}", "a comparison calculates with more than 10 operators"),
    ],
    ids=["characters", "conditions", "not", "parentheses", "50,000 not", "sum", "two sums"],
)
def test_a_predicate_of_ten_times_the_limits_is_a_fault(text: str, message: str) -> None:
    with within(10), pytest.raises(PredicateError) as raised:
        parse(text)
    assert raised.value.fault.message == message
    assert len(str(raised.value.fault)) < 2000
    assert parse("a = 1")


def routes_of(count: int) -> str:
    """Routes that differ in a property, none of which takes all messages of a later one."""
    lines = ["bridge.id=b", "source.s.type=stomp", "source.s.destinations=queue:q"]
    for number in range(count):
        lines += (
            f"routes.r{number}.in.include=is_{number}",
            f"routes.r{number}.out.topic=orders-{number}",
        )
    return "\n".join(lines)


def test_10_000_routes_are_checked_in_time_in_proportion() -> None:
    """Minutes before, when the keys of each route were searched among all keys, and it was compared with all others."""
    text = routes_of(10_000)
    with within(60):
        config = loads(text)
    assert len(config.routes) == 10_000
    assert config.routes[-1].name == "r9999"


def test_1000_sources_and_sinks_are_checked_in_time_in_proportion() -> None:
    lines = ["bridge.id=b", "routes.r.in.include=TRUE", "routes.r.out.topic=t"]
    for number in range(1_000):
        lines += (
            f"source.s{number}.type=stomp",
            f"source.s{number}.url=stomp://127.0.0.1:{10_000 + number}",
            f"source.s{number}.destinations=queue:q{number}",
            f"sink.k{number}.type=nats",
            f"sink.k{number}.url=nats://127.0.0.1:{20_000 + number}",
        )
    with within(20):
        config = loads("\n".join(lines))
    assert (len(config.sources), len(config.sinks)) == (1_000, 1_000)
