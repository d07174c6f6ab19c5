"""Timelines of messages that a whole bridge has carried: published, sent by a sink, and replayed as dead letters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.integration.bridge_process import wait
from tests.integration.commands import printed

if TYPE_CHECKING:
    from tests.integration.bridge_process import Bridge


def events(bridge: Bridge, record: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(printed(bridge.file, "message", record, "--json"))["events"]
    return found


def names(told: list[dict[str, Any]]) -> list[str]:
    return [event["what"] for event in told]


def records(told: list[dict[str, Any]], what: str) -> list[str]:
    return [event["record"] for event in told if event["what"] == what]


def newest(bridge: Bridge, address: str) -> str:
    """Position of the newest message from an address in the journal, without its topic."""
    out = printed(bridge.file, "journal", "tail", "-n", "1", "--where", f"msg.address=={address}", "--json")
    found = json.loads(out)
    return f"{found['partition']}:{found['offset']}"


def test_a_message_for_a_topic_and_a_sink_is_followed_from_each_of_its_records(bridge: Bridge) -> None:
    bridge.send([11], "story")
    wait(lambda: len(bridge.records("story-1")) == 1)
    at = newest(bridge, "story")
    wait(lambda: "delivered" in names(events(bridge, at)), lambda: events(bridge, at))
    told = events(bridge, at)
    assert names(told) == ["sent", "journaled", "routed", "published", "published", "delivered"]
    assert all(event["time"] for event in told if event["what"] in ("sent", "journaled", "published"))
    assert sorted(record.partition(":")[0] for record in records(told, "published")) == [
        "jms-bridge.sink.jms",
        "story-1",
    ]
    assert "route 'story' takes it" in told[2]["detail"]
    assert "by the routes in force from" in told[2]["detail"]
    for record in records(told, "published"):
        assert events(bridge, record) == told
    lines = printed(bridge.file, "message", at).splitlines()
    assert any("  journaled  jms-bridge.journal:" in line for line in lines)


def test_a_replayed_dead_letter_is_followed_from_each_of_its_records(bridge: Bridge) -> None:
    # It has no valid key, and a replay does not change that.
    bridge.send(["a b"], "story")  # type: ignore[list-item]

    def letters() -> list[dict[str, Any]]:
        out = printed(bridge.file, "dlt", "list", "--route", "story", "--json")
        return [json.loads(line) for line in out.splitlines()]

    wait(lambda: len(letters()) == 2)
    at = newest(bridge, "story")
    first = events(bridge, at)
    assert names(first) == ["sent", "journaled", "routed", "dead letter", "open", "dead letter", "open"]
    dead = records(first, "dead letter")
    printed(bridge.file, "dlt", "replay", *dead)
    wait(lambda: len(letters()) == 4)
    told = events(bridge, at)
    assert names(told).count("dead letter") == 4
    assert names(told).count("replayed") == 2
    assert names(told).count("open") == 2
    assert "key-invalid" in next(event["detail"] for event in told if event["what"] == "dead letter")
    for record in {*records(told, "dead letter"), *records(told, "replayed")}:
        assert events(bridge, record) == told
