"""What lint finds in the keys of dead letters, and in what else would get into their topics."""

from __future__ import annotations

import pytest

from routes.config import lint_text, loads

START = """\
bridge.id=b
source.s.type=stomp
source.s.destinations=queue:q
routes.r.in.include=msg.address==q
routes.r.out.topic=t
routing.dead-letter-topic=d
"""
"""A configuration without a fault, six lines long."""


@pytest.mark.parametrize(
    ("line", "place", "message"),
    [
        ("journal.state-topic=d.replayed", "7:21", "'d.replayed' is the audit of dead letters"),
        ("journal.topic=d.quarantine", "6:27", "'d.quarantine' is the quarantine of dead letters"),
        ("sink.n.type=nats\nsink.n.topic=d.replayed", "8:14", "'d.replayed' is the audit of dead letters"),
        ("routes.r.out.topic=d.quarantine", "7:20", "'d.quarantine' is the quarantine of dead letters"),
        ("routing.max-replays=0", "7:21", "'0' is not a whole number from 1 to 1000"),
        ("routing.max-replay=3", "7:1", "unknown key 'routing.max-replay'"),
    ],
)
def test_slips_with_dead_letters(line: str, place: str, message: str) -> None:
    found = lint_text(START + line).errors[0]
    assert (f"{found.line}:{found.column}", found.message) == (place, message)


def test_a_configuration_names_the_topics_beside_its_dead_letters() -> None:
    config = loads(START + "routing.max-replays=7\nembedded=auto")
    assert config.routing.max_replays == 7
    assert config.letter_topics == ("d", "d.replayed", "d.quarantine")
    assert config.own_topics == {
        "jms-bridge.journal",
        "jms-bridge.journal.state",
        "jms-bridge.journal.looks",
        "jms-bridge.journal.positions",
        "jms-bridge.journal.actions",
        "d",
        "d.replayed",
        "d.quarantine",
    }


def test_without_a_name_the_topic_of_dead_letters_is_the_bridges_own() -> None:
    config = loads(START.replace("routing.dead-letter-topic=d", "journal.topic=j"))
    assert config.letter_topics == ("j.set-aside", "j.set-aside.replayed", "j.set-aside.quarantine")
    assert config.own_topics >= {*config.letter_topics}
    assert not config.router_dead_letters
    found = lint_text(config.text.replace("routes.r.out.topic=t", "routes.r.out.topic=j.set-aside")).errors[0]
    assert (found.line, found.message) == (5, "'j.set-aside' is the dead-letter topic")
