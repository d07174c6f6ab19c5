"""Differences between two configurations."""

import itertools
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routes.config import Change, ChangeKind, diff
from routes.config.compare import _longest_rise
from routes.errors import ConfigurationError

BASE = """\
bridge.id=b1
source.s.type=stomp
source.s.password=hunter2
source.s.destinations=queue:orders
routes.a.in.include=msg.address==orders AND n > 1
routes.a.out.topic=a
routes.b.in.include=msg.address==b
routes.b.out.topic=b
routes.c.in.include=msg.address==c
routes.c.out.topic=c
kafka.acks=all
"""


def changes(folder: Path, old: str, new: str, env: dict[str, str] | None = None) -> tuple[Change, ...]:
    (folder / "old").write_text(old)
    (folder / "new").write_text(new)
    return diff(folder / "old", folder / "new", env or {})


def texts(folder: Path, old: str, new: str) -> list[str]:
    return [f"{c.kind} {c.section} {c.name} {c.key}: {c.old} -> {c.new}" for c in changes(folder, old, new)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("msg.address==orders AND n > 1", "msg.address = 'orders' && (n>1)"),
        ("routes.a.out.topic=a\n", "# moved here\nroutes.a.out.topic : kafka\\:a\n"),
        ("kafka.acks=all\n", "kafka.acks=all\nrouter.interval=2m\nrouter.mode=realtime\nsource.s.workers=1\n"),
        ("kafka.acks=all\n", "kafka.acks=all\nroutes.a.on-soft-failure=stop\nroutes.a.name=a\n"),
        ("kafka.acks=all\n", "kafka.acks=all\njournal.state-topic=jms-bridge.journal.state\n"),
    ],
)
def test_what_means_the_same_is_no_difference(tmp_path: Path, old: str, new: str) -> None:
    assert changes(tmp_path, BASE, BASE.replace(old, new)) == ()


def test_routes_are_added_removed_changed_and_moved(tmp_path: Path) -> None:
    new = """\
bridge.id=b1
source.s.type=stomp
source.s.password=hunter2
source.s.destinations=queue:orders
routes.c.in.include=msg.address==c
routes.c.out.topic=c
routes.a.in.include=msg.address==orders AND n > 2
routes.a.out.topic=a
routes.a.in.exclude=test
routes.d.in.include=msg.address==d
routes.d.out.topic=d
kafka.acks=all
"""
    assert texts(tmp_path, BASE, new) == [
        "removed routes b :  -> ",
        "removed routes b routes.b.in.include: msg.address==b -> ",
        "removed routes b routes.b.out.topic: b -> ",
        "moved routes c : last -> before 'a'",
        "changed routes a routes.a.in.include: msg.address==orders AND n > 1 -> msg.address==orders AND n > 2",
        "added routes a routes.a.in.exclude: (not set) -> test",
        "added routes d :  -> ",
        "added routes d routes.d.in.include:  -> msg.address==d",
        "added routes d routes.d.out.topic:  -> d",
    ]


def test_settings_are_compared_with_their_defaults_and_what_is_inherited(tmp_path: Path) -> None:
    new = BASE.replace("kafka.acks=all", "kafka.linger.ms=5") + "routing.on-soft-failure=skip\njournal.topic=j\n"
    assert texts(tmp_path, BASE, new) == [
        *(f"changed routes {r} routes.{r}.on-soft-failure: (stop) -> (skip)" for r in "abc"),
        "changed routing  routing.on-soft-failure: (stop) -> skip",
        "removed kafka  kafka.acks: all -> (not set)",
        "added kafka  kafka.linger.ms: (not set) -> 5",
        "changed journal  journal.topic: (jms-bridge.journal) -> j",
        "changed journal  journal.state-topic: (jms-bridge.journal.state) -> (j.state)",
    ]


def test_secrets_are_compared_and_never_shown(tmp_path: Path) -> None:
    (change,) = changes(tmp_path, BASE, BASE.replace("hunter2", "hunter3"))
    assert (change.key, change.old, change.new) == ("source.s.password", "******", "******")
    assert "hunter" not in repr(change)


def test_references_that_lead_nowhere_here_are_compared_as_written(tmp_path: Path) -> None:
    reference = BASE.replace("hunter2", "${env:PASSWORD}")
    assert changes(tmp_path, reference, reference) == ()
    (change,) = changes(tmp_path, reference, BASE.replace("hunter2", "${env:OTHER}"))
    assert (change.kind, change.old, change.new) == (ChangeKind.CHANGED, "${env:PASSWORD}", "${env:OTHER}")


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "old").write_text(BASE)
    with pytest.raises(ConfigurationError, match="there is no such file"):
        diff(tmp_path / "old", tmp_path / "gone")


@given(st.permutations(range(6)))
def test_as_few_as_can_be_are_called_moved(numbers: list[int]) -> None:
    rise = _longest_rise(numbers)
    longest = max(
        len(chosen)
        for size in range(7)
        for chosen in itertools.combinations(numbers, size)
        if list(chosen) == sorted(chosen)
    )
    assert len(rise) == longest


def test_thousands_of_routes_in_another_order_take_no_minutes(tmp_path: Path) -> None:
    names = [f"r{n}" for n in range(2000)]
    shuffled = random.Random(1).sample(names, len(names))  # noqa: S311 - not for secrets
    files = [
        "".join(f"routes.{n}.in.include=msg.address=={n}\nroutes.{n}.out.topic={n}\n" for n in order)
        for order in (names, shuffled)
    ]
    assert {change.kind for change in changes(tmp_path, *files)} == {ChangeKind.MOVED}
