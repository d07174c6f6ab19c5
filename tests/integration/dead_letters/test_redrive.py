"""Dead letters chosen by filters, replayed at a rate, put into quarantine, discarded: each once, all in the audit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from engine.dead_letters.audit import Action, Actor, last
from engine.dead_letters.letter import Filters
from engine.dead_letters.replay import Options, ReplayOutcome, discard, replay
from engine.embedded import EmbeddedKafka
from engine.kafka.clients import KafkaClients
from engine.kafka.reader import KafkaTopicReader, Position
from engine.message import Message, Record
from routes.properties import JmsType, Property
from tests.conftest import TopicFactory
from tests.integration.buried import Bridge, added, dead_letters_of, message, replayed
from tests.topic_records import ordered_producer
from tests.waiting import patience


@pytest.fixture
def bridge(tmp_path: Path, kafka: EmbeddedKafka, topic: TopicFactory) -> Bridge:
    return dead_letters_of(kafka, topic, tmp_path, "routing.max-replays=2\n")


def tired(number: int, replays: int = 2) -> Record:
    """A message that was replayed so often."""
    return replayed(message(number), replays)


def mixed(bridge: Bridge) -> list[Record]:
    """Four dead letters of two reasons, written as they are; their messages."""
    records = [message(0, JMSType="a"), message(1, JMSType="b"), message(2, JMSType="a"), message(3, JMSType="b")]
    for number, record in enumerate(records):
        own = added(bridge.config.journal.topic, number, "unmatched" if number == 3 else "key-not-found")
        bridge.bury_as_it_is(Record(record.key, record.value, (*record.headers, *own)))
    return records


def command(bridge: Bridge, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "engine", "dlt", *arguments, "-c", str(bridge.config.path)]


def bodies(records: Sequence[Record]) -> list[str]:
    return sorted((record.value or b"").decode() for record in records)


def test_only_what_all_filters_take_is_listed_and_replayed(bridge: Bridge, capsys: pytest.CaptureFixture[str]) -> None:
    mixed(bridge)
    chosen = ("--reason", "key-not-found", "--where", "JMSType = 'b'", "--since", "2026-11-21", "--route", "orders")
    assert bridge.command("dlt", "list", "--json", *chosen) == 0
    (row,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert row["position"] == f"{bridge.dead}:0:1"
    assert bridge.command("dlt", "replay", *chosen) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(f"{bridge.dead}:0:1  replayed to ")
    assert captured.err == "1 replayed\n"
    assert bodies(bridge.journal()) == ["body 1"]
    assert bridge.command("dlt", "replay", "-H", "Type=a", "-H", "Type=b", "--reason", "key-not-found") == 0
    assert capsys.readouterr().err == "2 replayed, 1 already replayed\n"
    assert bodies(bridge.journal()) == ["body 0", "body 1", "body 2"]


def test_filters_that_take_nothing_say_so(bridge: Bridge, capsys: pytest.CaptureFixture[str]) -> None:
    mixed(bridge)
    for arguments in (("list",), ("replay",), ("replay", "--dry-run"), ("discard",)):
        assert bridge.command("dlt", *arguments, "--reason", "refused") == 0
        captured = capsys.readouterr()
        assert (captured.out, "no such dead letters" in captured.err) == ("", True)


def test_the_list_holds_the_newest_of_those_that_filters_take(
    bridge: Bridge, capsys: pytest.CaptureFixture[str]
) -> None:
    bridge.bury(*(message(number, JMSType="ab"[number % 2]) for number in range(20)))
    assert bridge.command("dlt", "list", "-n", "3", "--header", "JMSType=b", "--json") == 0
    rows = [json.loads(line)["key"] for line in capsys.readouterr().out.splitlines()]
    assert rows == ["ID:15", "ID:17", "ID:19"]


def test_a_dry_run_adds_up_reasons_and_routes_and_writes_nothing(
    bridge: Bridge, capsys: pytest.CaptureFixture[str]
) -> None:
    mixed(bridge)
    bridge.bury(tired(4), message(5, JMSExpiration="1000"))
    assert bridge.command("dlt", "replay", "--all", "--dry-run") == 0
    captured = capsys.readouterr()
    header, *rows = (line.split() for line in captured.out.splitlines())
    moment = "2026-11-21T06:00:00.123Z"
    assert header == ["reason", "route", "count", "oldest", "newest", "outcome"]
    assert rows == [
        ["key-not-found", "orders", "3", moment, moment, "would", "replay"],
        ["key-not-found", "orders", "1", moment, moment, "not", "replayable"],
        ["key-not-found", "orders", "1", moment, moment, "would", "quarantine"],
        ["unmatched", "orders", "1", moment, moment, "would", "replay"],
    ]
    assert captured.err == "4 would replay, 1 not replayable, 1 would quarantine\n"
    assert bridge.command("dlt", "replay", "--reason", "unmatched", "--dry-run", "--json") == 0
    (row,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert row == {
        "reason": "unmatched",
        "route": "orders",
        "outcome": "would replay",
        "count": 1,
        "oldest": moment,
        "newest": moment,
    }
    assert bridge.journal() == []
    assert bridge.command("dlt", "audit") == 0
    assert capsys.readouterr().err == "no dead letter was replayed or discarded yet\n"


def test_a_replay_stops_after_the_number_it_was_given_and_the_same_command_goes_on(
    bridge: Bridge, capsys: pytest.CaptureFixture[str]
) -> None:
    bridge.bury(*map(message, range(5)))
    said = []
    for _ in range(3):
        assert bridge.command("dlt", "replay", "--all", "--max", "2") == 0
        said.append(capsys.readouterr().err)
    assert said == [
        "2 replayed; 3 left, the same command goes on with them\n",
        "2 already replayed, 2 replayed; 1 left, the same command goes on with them\n",
        "4 already replayed, 1 replayed\n",
    ]
    assert len(bridge.journal()) == 5


def test_a_replay_is_not_faster_than_its_rate_and_even(bridge: Bridge) -> None:
    bridge.bury(*map(message, range(40)))
    started = time.monotonic()
    replayed_at = [time.monotonic() - started for _ in replay(bridge.store, None, options=Options(per_second=20))]
    # In batches of two; the first one goes at once.
    assert replayed_at[-1] - replayed_at[0] >= 1.8
    assert replayed_at[-1] - replayed_at[19] >= 0.8
    assert len(bridge.journal()) == 40


def test_what_was_replayed_too_often_goes_into_quarantine_once_and_comes_out_only_by_force(
    bridge: Bridge, capsys: pytest.CaptureFixture[str]
) -> None:
    bridge.bury(message(0), tired(1), tired(2, 1))
    letters = bridge.records(bridge.dead)
    assert bridge.replay() == [(0, ReplayOutcome.REPLAYED), (1, ReplayOutcome.QUARANTINED), (2, ReplayOutcome.REPLAYED)]
    assert sorted(bridge.journal(), key=repr) == sorted([replayed(message(0)), tired(2, 2)], key=repr)
    quarantine = f"{bridge.dead}.quarantine"
    assert bridge.records(quarantine) == [letters[1]]
    for force in (False, True):
        again = list(replay(bridge.store, None, options=Options(force=force)))
        assert [(each.outcome, each.detail) for each in again][1] == (
            ReplayOutcome.ALREADY_QUARANTINED,
            f"{quarantine}:0:0",
        )
    assert len(bridge.records(quarantine)) == 1

    assert bridge.command("dlt", "list", "--quarantine", "--json") == 0
    assert json.loads(capsys.readouterr().out)["position"] == f"{quarantine}:0:0"
    assert bridge.command("dlt", "show", "0:0", "--quarantine") == 0
    assert "body 1" in capsys.readouterr().out
    assert bridge.command("dlt", "replay", "--quarantine", "--all") == 0
    assert "not replayable: it was replayed 2 times and failed again; --force replays it" in capsys.readouterr().out
    assert bridge.command("dlt", "replay", f"{quarantine}:0:0") == 64
    assert "add --quarantine" in capsys.readouterr().err
    assert bridge.command("dlt", "replay", "--quarantine", "--force", "0:0") == 0
    assert capsys.readouterr().err == "1 replayed\n"
    assert tired(1, 3) in bridge.journal()
    assert bridge.command("dlt", "replay", "--quarantine", "--force", "--all") == 0
    assert capsys.readouterr().err == "1 already replayed\n"
    assert len(bridge.journal()) == 3


def test_a_quarantine_that_nothing_was_put_into_is_empty(bridge: Bridge, capsys: pytest.CaptureFixture[str]) -> None:
    bridge.bury(message(0))
    assert bridge.command("dlt", "list", "--quarantine") == 0
    assert capsys.readouterr().err == f"no dead letters in '{bridge.dead}.quarantine'\n"
    assert bridge.command("dlt", "replay", "--quarantine", "--all") == 0
    assert capsys.readouterr().err == f"no dead letters in '{bridge.dead}.quarantine'\n"


def test_force_replays_what_was_replayed_too_often_at_once(bridge: Bridge) -> None:
    bridge.bury(tired(0))
    assert bridge.replay(options=Options(force=True)) == [(0, ReplayOutcome.REPLAYED)]
    assert bridge.journal() == [tired(0, 3)]


def test_the_quarantine_keeps_what_the_dead_letter_topic_would_keep(bridge: Bridge) -> None:
    bridge.bury(Record(b"k", b"x" * 1_500_000, (("jmsbridge.replays", b"2"),)))
    assert bridge.replay() == [(0, ReplayOutcome.QUARANTINED)]
    assert len(bridge.records(f"{bridge.dead}.quarantine")[0].value or b"") == 1_500_000


def test_discarded_dead_letters_are_settled_without_a_replay(
    bridge: Bridge, capsys: pytest.CaptureFixture[str]
) -> None:
    bridge.bury(message(0), message(1, JMSExpiration="1000"), message(2), tired(3))
    assert bridge.command("dlt", "discard", "0:0", "0:1") == 0
    captured = capsys.readouterr()
    assert captured.out == f"{bridge.dead}:0:0  discarded\n{bridge.dead}:0:1  discarded\n"
    assert captured.err == "2 discarded\n"
    assert bridge.command("dlt", "replay", "--all") == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{bridge.dead}:0:0  already discarded: by ")
    assert second.startswith(f"{bridge.dead}:0:1  already discarded: by ")
    assert [each.outcome for each in discard(bridge.store, None)] == [
        ReplayOutcome.ALREADY_DISCARDED,
        ReplayOutcome.ALREADY_DISCARDED,
        ReplayOutcome.ALREADY_REPLAYED,
        ReplayOutcome.ALREADY_QUARANTINED,
    ]
    assert bodies(bridge.journal()) == ["body 2"]
    assert bridge.replay(0, options=Options(force=True)) == [(0, ReplayOutcome.REPLAYED)]
    assert bodies(bridge.journal()) == ["body 0", "body 2"]


def test_a_message_is_corrected_before_it_is_replayed_and_its_letter_stays_as_it_is(
    bridge: Bridge, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = replace(message(0, JMSExpiration="1000"), value=None)
    types = ("jmsbridge.types", b"n=int,m=int"), ("jmsbridge.body-types", b"null")
    record = replace(record, headers=(*record.headers, ("jms.n", b"1"), ("jms.m", b"2"), *types))
    bridge.bury(record)
    before = bridge.records(bridge.dead)
    body = tmp_path / "its body.json"
    body.write_bytes(b'{"a": 1}')
    assert bridge.command("dlt", "replay", "0:0") == 0
    assert "it has expired since" in capsys.readouterr().out
    corrected = ["--set", "n=seven=7", "--set", "Type=b", "--unset", "JMSExpiration", "--key", "k"]
    assert bridge.command("dlt", "replay", "0:0", *corrected, "--body-file", str(body)) == 0
    (sent,) = bridge.journal()
    assert (sent.key, sent.value) == (b"k", b'{"a": 1}')
    found = Message.from_record(sent)
    assert found.headers["JMSType"] == "b"
    assert "JMSExpiration" not in found.headers
    assert found.properties == {"n": Property("seven=7"), "m": Property("2", JmsType.INT)}
    assert sent.header("jmsbridge.body-types") is None
    assert bridge.records(bridge.dead) == before
    (entry,) = last(bridge.store, 10)
    options = f"--set n=seven=7 --set Type=b --unset JMSExpiration --key k --body-file '{body}'"
    assert entry.actor.command == f"dlt replay POSITION... {options}"
    assert bridge.command("dlt", "replay", "0:0", "--set", "n=8") == 0
    assert "already replayed" in capsys.readouterr().out
    assert len(bridge.journal()) == 1


def test_a_large_body_is_declared_and_a_cut_one_can_be_given_again(bridge: Bridge, tmp_path: Path) -> None:
    record = message(0)
    bridge.bury(replace(record, headers=(*record.headers, ("jmsbridge.truncated", b"3000000"))))
    body = tmp_path / "body"
    body.write_bytes(b"x" * 300_000)
    assert bridge.replay(0) == [(0, ReplayOutcome.NOT_REPLAYABLE)]
    assert bridge.command("dlt", "replay", "0:0", "--body-file", str(body)) == 0
    (sent,) = bridge.journal()
    name, size = sent.headers[-1]
    assert name == "jmsbridge.size"
    assert int(size or b"") == replace(sent, headers=sent.headers[:-1]).size
    assert sent.header("jmsbridge.truncated") is None


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--all", "--body-file", "x"], "--body-file is the body of one message: give one POSITION"),
        (["0:0", "0:1", "--body-file", "x"], "--body-file is the body of one message: give one POSITION"),
        (["0:0", "--body-file", "/missing/file"], "--body-file /missing/file: No such file or directory"),
        (["0:0", "--set", "region"], "'region': expected NAME=VALUE"),
        (["0:0", "--set", "jmsbridge.route=a"], "'jmsbridge.route' is a header of the bridge itself"),
        (["0:0", "--set", "a=1", "--unset", "a"], "'a' is both set and removed"),
    ],
)
def test_a_correction_that_cannot_be_made_is_one_clear_line(
    bridge: Bridge, options: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bridge.command("dlt", "replay", *options) == 64
    assert told in capsys.readouterr().err


def test_the_audit_says_who_did_what_when_why_and_where_the_copy_is(
    bridge: Bridge, capsys: pytest.CaptureFixture[str]
) -> None:
    bridge.bury(message(0), message(1), tired(2))
    actor = Actor("alice", "host-1", "dlt replay --reason key-not-found")
    list(replay(bridge.store, [Position(bridge.dead, 0, 0)], options=Options(actor=actor)))
    assert bridge.command("dlt", "discard", "--header", "JMSMessageID=ID:1") == 0
    assert bridge.command("dlt", "replay", "--all") == 0
    capsys.readouterr()
    journal = bridge.config.journal.topic
    first, second, third = last(bridge.store, 10)
    assert (first.position, first.action, first.actor) == (Position(bridge.dead, 0, 0), Action.REPLAYED, actor)
    assert (first.reason, first.route, first.journal, first.replays) == ("key-not-found", "orders", f"{journal}:0:0", 1)
    at = Position.parse(first.copy, "")
    with KafkaTopicReader(KafkaClients(bridge.config.kafka_access), at.topic) as reader:
        assert reader.at(at.partition, at.offset).record == replayed(message(0))
    assert (second.action, second.copy, second.replays) == (Action.DISCARDED, "", 0)
    assert second.actor == Actor.here("dlt discard --header JMSMessageID=ID:1")
    assert (third.action, third.copy, third.replays) == (Action.QUARANTINED, f"{bridge.dead}.quarantine:0:0", 2)

    assert bridge.command("dlt", "audit", "--json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows == [{"position": str(each.position), **json.loads(each.to_json())} for each in (first, second, third)]
    assert bridge.command("dlt", "audit", "-n", "1") == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["dead", "letter", "time", "action", "by", "reason", "route", "to", "command"]
    assert "quarantined" in row
    assert row.endswith("dlt replay --all")


def test_entries_of_earlier_versions_and_of_strangers_count_for_what_they_are(bridge: Bridge) -> None:
    bridge.bury(message(0), message(1))
    bridge.replay(1)
    producer = ordered_producer(bridge.kafka.bootstrap)
    audit = f"{bridge.dead}.replayed"
    producer.produce(audit, key=f"{bridge.dead}:0:0", value="journal:0:9 2026-11-21T06:47:07Z")
    producer.produce(audit, key="nonsense", value="{")
    producer.produce(audit, key=f"{bridge.dead}:99:99999999999999999999", value="{}")
    assert producer.flush(10) == 0
    first, second = replay(bridge.store, None)
    assert (first.outcome, first.detail) == (ReplayOutcome.ALREADY_REPLAYED, "journal:0:9")
    assert second.outcome is ReplayOutcome.ALREADY_REPLAYED


def test_dead_letters_of_a_topic_that_was_created_anew_are_not_taken_for_those_before(bridge: Bridge) -> None:
    bridge.bury(message(0))
    assert bridge.replay() == [(0, ReplayOutcome.REPLAYED)]
    admin = AdminClient({"bootstrap.servers": bridge.kafka.bootstrap})
    admin.delete_topics([bridge.dead])[bridge.dead].result(30)
    deadline = time.monotonic() + patience(30)
    while bridge.dead in admin.list_topics(timeout=10).topics and time.monotonic() < deadline:
        time.sleep(0.1)
    admin.create_topics([NewTopic(bridge.dead, 2, 1)])[bridge.dead].result(30)
    bridge.bury(message(1))
    assert bridge.replay() == [(0, ReplayOutcome.REPLAYED)]
    assert bodies(bridge.journal()) == ["body 0", "body 1"]


@pytest.mark.kills
def test_a_replay_with_a_quarantine_that_is_killed_leaves_nothing_half_done(bridge: Bridge) -> None:
    bridge.bury(*(tired(number) if number % 3 == 0 else message(number) for number in range(3000)))
    for lines in (1, 700, 1500):
        with subprocess.Popen(
            command(bridge, "replay", "--all"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout is not None
            for _ in range(lines):
                process.stdout.readline()
            process.kill()
    rest = Counter(each.outcome for each in replay(bridge.store, None))
    assert rest.total() == 3000
    assert rest[ReplayOutcome.ALREADY_REPLAYED] > 0
    everywhere = [*bridge.journal(), *bridge.records(f"{bridge.dead}.quarantine")]
    assert bodies(everywhere) == sorted(f"body {number}" for number in range(3000))
    entries = last(bridge.store, 10_000)
    assert len(entries) == len({entry.position for entry in entries}) == 3000
    assert Counter(entry.action for entry in entries) == {Action.REPLAYED: 2000, Action.QUARANTINED: 1000}


def test_a_replay_that_is_interrupted_completes_what_it_began_and_says_how_many_are_left(bridge: Bridge) -> None:
    bridge.bury(*map(message, range(300)))
    with subprocess.Popen(
        command(bridge, "replay", "--all", "--rate", "50"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for _ in range(10):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGINT)
        out, error = process.communicate(timeout=60)
    assert process.returncode == 130
    told = 10 + len(out.splitlines())
    assert error == f"interrupted: {told} replayed; {300 - told} left, the same command goes on with them\n"
    assert len(bridge.journal()) == told < 300
    assert Counter(outcome for _, outcome in bridge.replay())[ReplayOutcome.REPLAYED] == 300 - told
    assert bodies(bridge.journal()) == sorted(f"body {number}" for number in range(300))


def test_a_replay_ends_although_new_dead_letters_keep_coming(bridge: Bridge) -> None:
    bridge.bury(*map(message, range(3)))
    seen = []
    for number, each in enumerate(replay(bridge.store, None, dry_run=True)):
        bridge.bury(message(100 + number))
        seen.append(each.position.offset)
    assert seen == [0, 1, 2]


def test_whoever_takes_long_over_a_dead_letter_does_not_take_kafka_for_gone(
    bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.dead_letters.replay.KafkaTopicReader", partial(KafkaTopicReader, answer_seconds=2.0))
    bridge.bury(*map(message, range(3)))
    for _ in replay(bridge.store, None, dry_run=True):
        time.sleep(2.5)


def test_a_selection_takes_only_what_its_filters_take_from_many(bridge: Bridge) -> None:
    bridge.bury(*(message(number, JMSType=str(number % 7)) for number in range(2000)))
    options = Options(Filters(headers={"JMSType": frozenset({"3"})}), most=100)
    assert {outcome for _, outcome in bridge.replay(options=options)} == {ReplayOutcome.REPLAYED}
    assert bodies(bridge.journal()) == sorted(f"body {number}" for number in range(3, 700, 7))
