"""Dead letters in a real Kafka: listed, shown, and replayed once, whatever interrupts it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from engine.dead_letters.replay import ReplayOutcome, replay
from engine.embedded import EmbeddedKafka
from engine.errors import UsageError
from engine.kafka.clients import KafkaClients
from engine.kafka.reader import KafkaTopicReader, Position
from engine.kafka.topics import BridgeTopics
from engine.message import Record
from routes.config import load
from routes.targets import audit_topic
from tests.conftest import TopicFactory
from tests.integration.buried import Bridge, dead_letters_of, message, replayed


@pytest.fixture
def bridge(tmp_path: Path, kafka: EmbeddedKafka, topic: TopicFactory) -> Bridge:
    return dead_letters_of(kafka, topic, tmp_path)


def test_a_replay_brings_the_original_back_into_the_journal_and_nothing_of_the_dead_letter(bridge: Bridge) -> None:
    originals = [message(1), Record(None, b"\xff\x00", (("jms.größe", b"\xfe"), ("jms.none", None)))]
    bridge.bury(*originals)
    assert bridge.replay(0, 1) == [(0, ReplayOutcome.REPLAYED), (1, ReplayOutcome.REPLAYED)]
    assert sorted(bridge.journal(), key=repr) == sorted(map(replayed, originals), key=repr)


def test_a_replay_says_where_in_the_journal_the_copy_is(bridge: Bridge) -> None:
    bridge.bury(message(1))
    (first,) = replay(bridge.store, None)
    at = Position.parse(first.detail, "")
    with KafkaTopicReader(KafkaClients(bridge.config.kafka_access), at.topic) as reader:
        assert reader.at(at.partition, at.offset).record == replayed(message(1))
    (again,) = replay(bridge.store, None)
    assert (again.outcome, again.detail) == (ReplayOutcome.ALREADY_REPLAYED, first.detail)


def test_each_dead_letter_is_replayed_once_however_often_it_is_asked_for(bridge: Bridge) -> None:
    bridge.bury(*map(message, range(5)))
    assert bridge.replay(1, 1, 3) == [(1, ReplayOutcome.REPLAYED), (3, ReplayOutcome.REPLAYED)]
    assert [outcome for _, outcome in bridge.replay()] == [
        ReplayOutcome.REPLAYED,
        ReplayOutcome.ALREADY_REPLAYED,
        ReplayOutcome.REPLAYED,
        ReplayOutcome.ALREADY_REPLAYED,
        ReplayOutcome.REPLAYED,
    ]
    assert {outcome for _, outcome in bridge.replay()} == {ReplayOutcome.ALREADY_REPLAYED}
    assert len(bridge.journal()) == 5


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(bridge: Bridge) -> None:
    bridge.bury(message(0), message(1))
    assert bridge.replay(dry_run=True) == [(0, ReplayOutcome.WOULD_REPLAY), (1, ReplayOutcome.WOULD_REPLAY)]
    assert bridge.journal() == []
    bridge.replay(0)
    assert bridge.replay(dry_run=True) == [(0, ReplayOutcome.ALREADY_REPLAYED), (1, ReplayOutcome.WOULD_REPLAY)]


def test_what_cannot_be_replayed_says_why(bridge: Bridge) -> None:
    cut = message(0)
    bridge.bury(
        Record(cut.key, cut.value, (*cut.headers, ("jmsbridge.truncated", b"20971520"))),
        message(1, JMSExpiration="1000"),
        message(2, JMSExpiration="99999999999999"),
    )
    bridge.bury_as_it_is(Record(b"k", b"begin", (("jmsbridge.truncated", b"30000000"),)))
    first, second, third, fourth = replay(bridge.store, None)
    assert (first.outcome, second.outcome, third.outcome) == (
        ReplayOutcome.NOT_REPLAYABLE,
        ReplayOutcome.NOT_REPLAYABLE,
        ReplayOutcome.REPLAYED,
    )
    assert first.detail == f"its body was cut; the original (20971520 bytes) was at {bridge.config.journal.topic}:0:0"
    assert fourth.detail == "its body was cut; the journal did not take the original (30000000 bytes)"
    assert second.detail == "it has expired since, so it would not be routed"
    assert len(bridge.journal()) == 1


def test_a_later_replay_takes_over_from_an_earlier_one_and_nothing_is_replayed_twice(bridge: Bridge) -> None:
    bridge.bury(*map(message, range(500)))
    earlier = replay(bridge.store, None)
    first = next(earlier)
    later = list(replay(bridge.store, None))
    with pytest.raises(UsageError, match="another replay for bridge 'b1' took over"):
        list(earlier)
    assert first.outcome is ReplayOutcome.REPLAYED
    assert {each.outcome for each in later} == {ReplayOutcome.REPLAYED, ReplayOutcome.ALREADY_REPLAYED}
    bodies = [record.value for record in bridge.journal()]
    assert len(bodies) == len(set(bodies)) == 500


def test_a_replay_that_is_killed_leaves_nothing_half_done(bridge: Bridge) -> None:
    bridge.bury(*map(message, range(3000)))
    command = [sys.executable, "-m", "engine", "dlt", "replay", "--all", "-c", str(bridge.config.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
    again = list(replay(bridge.store, None))
    assert len(again) == 3000
    assert any(each.outcome is ReplayOutcome.ALREADY_REPLAYED for each in again)
    bodies = [record.value for record in bridge.journal()]
    assert len(bodies) == len(set(bodies)) == 3000


def test_what_is_larger_than_the_journal_takes_ends_the_replay_with_its_remedy(
    bridge: Bridge, capsys: pytest.CaptureFixture[str]
) -> None:
    bridge.bury(Record(b"k", b"x" * 1_500_000, ()))
    assert bridge.command("dlt", "replay", "--all") == 4
    assert "raise its max.message.bytes" in capsys.readouterr().err
    assert bridge.journal() == []


def test_the_list_shows_the_newest_last_with_position_time_route_reason_key_and_size(
    bridge: Bridge, capsys: pytest.CaptureFixture[str]
) -> None:
    bridge.bury(message(0), message(1))
    bridge.bury(message(2), partition=1)
    assert bridge.command("dlt", "list") == 0
    header, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    assert header == ["position", "state", "time", "route", "reason", "key", "bytes"]
    assert rows == [
        [position, "open", "2026-11-21T06:00:00.123Z", "orders", "key-not-found", key, "6"]
        for position, key in (("0:0", "ID:0"), ("0:1", "ID:1"), ("1:0", "ID:2"))
    ]
    assert bridge.command("dlt", "list", "-n", "1", "--json") == 0
    (row,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert row == {
        "position": f"{bridge.dead}:1:0",
        "time": "2026-11-21T06:00:00.123Z",
        "route": "orders",
        "reason": "key-not-found",
        "detail": "there is no value under 'JMSCorrelationID' to take the key from",
        "journal": f"{bridge.config.journal.topic}:0:0",
        "target": None,
        "key": "ID:2",
        "bytes": 6,
        "state": "open",
        "retry": None,
    }


def test_the_list_shows_what_became_of_each_letter(bridge: Bridge, capsys: pytest.CaptureFixture[str]) -> None:
    bridge.bury(message(0), message(1), message(2))
    assert bridge.command("dlt", "replay", "0:0") == 0
    assert bridge.command("dlt", "discard", "0:2") == 0
    capsys.readouterr()
    assert bridge.command("dlt", "list") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows] == [
        ["position", "state"],
        ["0:0", "replayed"],
        ["0:1", "open"],
        ["0:2", "discarded"],
    ]
    assert bridge.command("dlt", "list", "--json", "-n", "1") == 0
    assert json.loads(capsys.readouterr().out)["state"] == "discarded"
    assert bridge.command("dlt", "list", "--json", "--state", "open") == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["position"] == f"{bridge.dead}:0:1"
    assert bridge.command("dlt", "list", "--state", "quarantined") == 0
    assert capsys.readouterr().err == f"no such dead letters in '{bridge.dead}'\n"


def test_one_dead_letter_is_shown_with_its_reason_headers_and_body(
    bridge: Bridge, capsys: pytest.CaptureFixture[str]
) -> None:
    bridge.bury(message(7))
    assert bridge.command("dlt", "show", "0:0") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "key-not-found in route 'orders': there is no value under 'JMSCorrelationID' to take the key from"
    )
    assert ["jms.JMSMessageID", "ID:7"] in [line.split() for line in lines]
    assert lines[-2:] == ["    body 7", ""]


def test_the_commands_say_what_they_did(bridge: Bridge, capsys: pytest.CaptureFixture[str]) -> None:
    bridge.bury(message(0), message(1, JMSExpiration="1000"))
    journal = bridge.config.journal.topic
    assert bridge.command("dlt", "replay", "--all") == 0
    captured = capsys.readouterr()
    first, second = captured.out.splitlines()
    assert first.startswith(f"{bridge.dead}:0:0  replayed to {journal}:")
    assert second == f"{bridge.dead}:0:1  not replayable: it has expired since, so it would not be routed"
    assert captured.err == "1 replayed, 1 not replayable\n"
    assert bridge.command("dlt", "replay", f"{bridge.dead}:0:0") == 0
    assert capsys.readouterr().out.startswith(f"{bridge.dead}:0:0  already replayed to {journal}:")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("replay",), "say which dead letters: either positions (as 0:17) or --all"),
        (("replay", "0:0", "--all"), "say which dead letters: either positions (as 0:17) or --all"),
        (("replay", "0:99"), "no such record"),
        (("replay", "other:0:0"), "dead letters are in '"),
        (("show", "zero"), "'zero' is not a position"),
    ],
)
def test_a_dead_letter_that_is_not_there_is_one_clear_line(
    bridge: Bridge, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    bridge.bury(message(0))
    assert bridge.command("dlt", *arguments) == 64
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_without_a_dead_letter_topic_what_was_set_aside_is_listed(
    bridge: Bridge, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line for line in bridge.config.path.read_text().splitlines() if not line.startswith("routing.")]
    bridge.config.path.write_text("\n".join([*lines, "journal.max-message-bytes=64KiB"]))
    config = load(bridge.config.path)
    BridgeTopics(config).ensure_journal()
    assert bridge.command("dlt", "list") == 0
    assert f"no dead letters in '{config.journal.topic}.set-aside'" in capsys.readouterr().err


def test_letters_of_one_message_and_failure_are_replayed_once(bridge: Bridge) -> None:
    def letter(number: int, route: str = "orders", body: bytes = b"body") -> Record:
        record = replace(message(0), value=body)
        headers = {"jmsbridge.position": f"{bridge.config.journal.topic}:0:{number}", "jmsbridge.route": route}
        own = tuple((name, text.encode()) for name, text in headers.items())
        time_ = ("jmsbridge.time", f"2026-11-21T06:00:0{next(seconds)}.000Z".encode())
        return replace(record, headers=(*record.headers, *own, ("jmsbridge.reason", b"refused"), time_))

    seconds = count()
    bridge.bury_as_it_is(letter(1), letter(1), letter(2), letter(1, route="other"), letter(1, body=b"another"))
    first, twin = ReplayOutcome.WOULD_REPLAY, ReplayOutcome.ALREADY_REPLAYED
    assert [outcome for _, outcome in bridge.replay(dry_run=True)] == [first, twin, first, first, first]
    first = ReplayOutcome.REPLAYED
    assert [outcome for _, outcome in bridge.replay()] == [first, twin, first, first, first]
    assert len(bridge.journal()) == 4
    bridge.bury_as_it_is(letter(2), letter(3))
    assert bridge.replay(5) == [(5, twin)]
    assert bridge.replay(6) == [(6, first)]
    assert len(bridge.journal()) == 5
    # Each has its entry, so that none counts as open.
    assert len(bridge.records(audit_topic(bridge.dead))) == 7


def test_listing_a_large_topic_takes_little_memory_and_time(bridge: Bridge, capsys: pytest.CaptureFixture[str]) -> None:
    bridge.bury(*(Record(b"k", b"x" * 1000, ()) for _ in range(50_000)))
    capsys.readouterr()
    started = time.monotonic()
    assert bridge.command("dlt", "list", "-n", "5") == 0
    assert time.monotonic() - started < 5
    assert len(capsys.readouterr().out.splitlines()) == 6
