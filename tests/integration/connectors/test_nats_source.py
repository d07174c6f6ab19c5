"""The NATS source against a real server: subscriptions and their groups, streams and what their consumers promise."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
import structlog

from engine.connectors.base import NotConnectedError
from engine.connectors.nats import json_frame, subscription, typed_frame
from engine.connectors.nats.header_frame import HeaderFrame
from engine.message import BodyType
from tests.integration.connectors.harness import Outgoing
from tests.integration.connectors.nats_harness import Connectors, NatsHarness, bodies, nothing, publish, receive
from tests.integration.connectors.running import numbered
from tests.waiting import patience

if TYPE_CHECKING:
    pass


def test_a_subscription_takes_what_its_wildcards_fit(
    jetstream: NatsHarness, connectors: Connectors, queue: str
) -> None:
    source = connectors.source(jetstream.url, f"{queue}.*.eu, {queue}.prices.>")
    source.connect()
    subjects = [f"{queue}.a.eu", f"{queue}.a.us", f"{queue}.prices.x.y", f"{queue}.prices"]

    publish(jetstream, [(subject, b"x") for subject in subjects], reply=f"{queue}.reply")
    found = receive(source, 2)

    assert nothing(source)
    source.acknowledge([delivery.token for delivery in found])
    source.close()
    headers = [delivery.message.headers for delivery in found]
    assert [each["JMSDestination"] for each in headers] == [f"topic:{queue}.a.eu", f"topic:{queue}.prices.x.y"]
    assert {each["JMSReplyTo"] for each in headers} == {f"topic:{queue}.reply"}
    assert len({each["JMSMessageID"] for each in headers}) == 2
    assert abs(int(headers[0]["JMSTimestamp"]) / 1000 - time.time()) < 60


def test_workers_share_a_subscription(jetstream: NatsHarness, connectors: Connectors, queue: str) -> None:
    sources = [connectors.source(jetstream.url, queue) for _ in range(3)]
    for source in sources:
        source.connect()

    publish(jetstream, [(queue, str(n).encode()) for n in range(300)])
    shares: list[list[int]] = [[], [], []]
    deadline = time.monotonic() + patience(10)
    while sum(map(len, shares)) < 300 and time.monotonic() < deadline:
        for source, share in zip(sources, shares, strict=True):
            if delivery := source.receive(0.01):
                share.append(int(delivery.message.body))

    assert sorted(n for share in shares for n in share) == list(range(300))
    assert all(shares)
    assert all(nothing(source, 0.2) for source in sources)
    for source in sources:
        source.close()


def test_what_comes_too_fast_is_lost_and_told_once(
    jetstream: NatsHarness, connectors: Connectors, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription, "MOST_WAITING_BYTES", 1000)
    source = connectors.source(jetstream.url, queue)
    source.connect()

    with structlog.testing.capture_logs() as logs:
        publish(jetstream, [(queue, b"x" * 100)] * 50)
        found = receive(source, 10)
        assert nothing(source)
        publish(jetstream, [(queue, b"y")])
        assert receive(source, 1)[0].message.body == b"y"

    source.close()
    assert len(found) == 10
    events = [entry["event"] for entry in logs if entry["log_level"] == "warning"]
    assert events[0].startswith("slow consumer: messages come faster than the journal takes them")
    assert events[1:] == ["taking messages again"]
    assert logs[-1]["lost"] == 40


def test_a_server_that_goes_is_noticed_but_what_has_come_is_kept(own: NatsHarness, connectors: Connectors) -> None:
    source = connectors.source(own.url, "a")
    source.connect()
    publish(own, [("a", b"1"), ("a", b"2")])
    receive(source, 1)

    own.kill()
    time.sleep(0.1)

    assert bodies(receive(source, 1)) == [2]
    with pytest.raises(NotConnectedError, match=r"the server has closed the connection|reset by peer"):
        nothing(source, 5)
    source.close()
    with pytest.raises(NotConnectedError, match="Connection refused"):
        source.connect()
    own.start()
    source.connect()
    publish(own, [("a", b"3")])
    assert bodies(receive(source, 1)) == [3]
    source.close()


def test_frames_are_read_and_faults_are_reported(jetstream: NatsHarness, connectors: Connectors, queue: str) -> None:
    source = connectors.source(jetstream.url, queue, stream=queue)
    frame = HeaderFrame(b"body")
    good = [json_frame.encode(frame), typed_frame.encode(frame)]
    jetstream.send(queue, [Outgoing(body) for body in (*good, good[0][:-1], good[1][:-1], good[1][:-2])])
    source.connect()

    with structlog.testing.capture_logs() as logs:
        found = receive(source, 5)

    source.acknowledge([delivery.token for delivery in found])
    source.close()
    assert [delivery.message.body for delivery in found[:2]] == [b"body", b"body"]
    assert found[2].fault is not None
    assert found[2].fault.startswith("a faulty JSON frame: the body should have 4 bytes, of which 3 are there")
    assert [delivery.fault for delivery in found[3:]] == [None, None]
    assert [delivery.message.body for delivery in found[2:]] == [good[0][:-1], good[1][:-1], good[1][:-2]]
    assert {delivery.message.body_type for delivery in found[2:]} == {BodyType.BYTES}
    assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == ["treated as a plain body"] * 2


def test_numbers_of_the_suite_come_in_their_order(jetstream: NatsHarness, connectors: Connectors, queue: str) -> None:
    jetstream.send(queue, numbered(5000))
    source = connectors.source(jetstream.url, queue, stream=queue)
    source.connect()
    assert bodies(receive(source, 5000)) == list(range(5000))
    source.close()
