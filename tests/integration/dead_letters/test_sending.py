"""Messages of the status page in a real Kafka: each is in the journal once, with its entry in the audit."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from engine.dead_letters.audit import Action, Actor, last
from engine.dead_letters.replay import ReplayOutcome
from engine.embedded import EmbeddedKafka
from engine.errors import HardFailureError
from engine.find.timeline import timeline
from engine.message import BodyType, Message
from engine.rerouting.replay import JournalReplay, ReroutingOptions
from engine.rerouting.selection import JournalSelection
from engine.rerouting.sending import JournalSender
from tests.conftest import TopicFactory
from tests.integration.buried import Bridge, dead_letters_of, message

ANNA = Actor("anna", "desk", "status page: send")


@pytest.fixture
def bridge(tmp_path: Path, kafka: EmbeddedKafka, topic: TopicFactory) -> Bridge:
    return dead_letters_of(kafka, topic, tmp_path)


def test_a_message_is_sent_once_with_an_entry_and_can_be_routed_again(bridge: Bridge) -> None:
    sender, record = JournalSender(), message(1)
    at = sender.send(bridge.store, record, ANNA, "token")
    assert sender.send(bridge.store, record, ANNA, "token") == at
    assert bridge.journal() == [record]
    (entry,) = last(bridge.store, 9)
    assert (entry.position, entry.action, entry.actor, entry.copy) == (at, Action.SENT, ANNA, str(at))
    events = [(event.what, event.record) for event in timeline(bridge.config, at).events]
    assert ("entered", at) in events
    replay = JournalReplay(bridge.config, ReroutingOptions(JournalSelection(positions=(at,))))
    assert [each.outcome for each in replay.survey()] == [ReplayOutcome.WOULD_REPLAY]
    assert [each.outcome for each in replay.run(Event())] == [ReplayOutcome.REPLAYED]
    assert sender.send(bridge.store, message(2), ANNA, "other") != at
    assert len(bridge.journal()) == 3


def test_a_message_that_kafka_refuses_leaves_nothing_behind(bridge: Bridge) -> None:
    large = Message(b"x" * 1_000_001, BodyType.BYTES).to_record()
    with pytest.raises(HardFailureError, match="the message is larger than"):
        JournalSender().send(bridge.store, large, ANNA, "token")
    assert bridge.journal() == []
    assert last(bridge.store, 9) == []
