"""One message for several destinations of two routes: Kafka, both kinds of brokers and a folder, each once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.dropboxes import Dropboxes, files
from tests.integration.bridge_process import wait
from tests.integration.commands import printed, run

if TYPE_CHECKING:
    from tests.integration.bridge_process import Bridge


def received(bridge: Bridge, queue: str, count: int, seconds: str = "30s") -> list[str]:
    """Bodies of the messages in a queue, which are taken from it."""
    options = ("--count", str(count), "--timeout", seconds, "--json")
    # With fewer messages than that, the exit status is another.
    lines = run(bridge.file, "receive", queue, *options).out.splitlines()
    return sorted(json.loads(line)["body"] for line in lines)


def test_each_destination_gets_the_message_once_and_a_replay_goes_to_the_one_that_failed(bridge: Bridge) -> None:
    folder = Dropboxes(bridge.file.parent / "var" / "dropbox").queue("fan-x")
    bridge.send([1], "fan", place="x")
    # It has no place, of which the name of the folder is made.
    bridge.send([2], "fan")
    wait(lambda: len(bridge.records("fan-2")) == 2 and len(files(folder / "target")) == 1)
    assert sorted(body for _, body in bridge.records("fan-1")) == ["order 1", "order 2"]
    for queue in ("jms:queue/fan.a", "jms:queue/fan.b", "amqp:queue/fan.c"):
        assert received(bridge, queue, 2) == ["order 1", "order 2"]

    letters = printed(bridge.file, "dlt", "list", "--route", "fan", "--json")
    assert letters.count('"reason": "destination-unresolved"') == 1
    printed(bridge.file, "dlt", "replay", "--all", "--route", "fan", "--reason", "destination-unresolved")
    wait(lambda: printed(bridge.file, "dlt", "list", "--route", "fan", "--json").count('"position"') == 2)
    assert [len(bridge.records(topic)) for topic in ("fan-1", "fan-2")] == [2, 2]
    assert received(bridge, "jms:queue/fan.a", 1, "2s") == []
