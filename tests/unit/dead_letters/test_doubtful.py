"""Entries of the audit that others wrote: a letter that they name is neither settled silently nor replayed twice."""

from __future__ import annotations

from dataclasses import replace

from engine.dead_letters.audit import Action, AuditEntry
from engine.dead_letters.replay import Options, ReplayOutcome, SettledLetters, _judged
from tests.unit.dead_letters.letters import letter

SEALED = letter(("jmsbridge.seal", b"run-1-1-digest"))
OF_OLDER_VERSION = letter()
FORGED = AuditEntry(SEALED.position, Action.REPLAYED, copy="j:0:1", is_doubtful=True)
OWN = replace(FORGED, is_doubtful=False)


def test_a_letter_that_others_mark_is_left_out_with_the_reason() -> None:
    verdict = _judged(SEALED, FORGED, Options(), 3)
    assert (verdict.action, verdict.outcome) == (None, ReplayOutcome.NOT_REPLAYABLE)
    assert "the audit says it was replayed, but this bridge has not sealed that entry" in verdict.detail
    assert _judged(SEALED, FORGED, Options(force=True), 3).action is Action.REPLAYED


def test_a_letter_that_the_bridge_marked_is_not_replayed_again_whatever_others_write() -> None:
    twin = replace(FORGED, position=replace(SEALED.position, offset=1), origin=SEALED.origin)
    for entries in ((OWN,), (OWN, twin)):
        done = SettledLetters(entries)
        assert _judged(SEALED, done.entry(SEALED), Options(force=True), 3).outcome is ReplayOutcome.ALREADY_REPLAYED
    own_twin = replace(twin, is_doubtful=False)
    done = SettledLetters([FORGED, own_twin])
    assert _judged(SEALED, done.entry(SEALED), Options(), 3).outcome is ReplayOutcome.ALREADY_REPLAYED
    done.note(twin)
    assert _judged(SEALED, done.entry(SEALED), Options(), 3).outcome is ReplayOutcome.ALREADY_REPLAYED


def test_letters_of_older_versions_keep_their_marks() -> None:
    assert _judged(OF_OLDER_VERSION, FORGED, Options(), 3).outcome is ReplayOutcome.ALREADY_REPLAYED
