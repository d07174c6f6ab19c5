"""Sentences of a timeline: what a message says about itself, and what routes do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.claims.claim import Claim
from engine.explain.explanation import result
from engine.message import REPLAYS
from engine.printable import shortened
from engine.trace_context import TRACEPARENT

if TYPE_CHECKING:
    from engine.dead_letters.audit import AuditEntry
    from engine.dead_letters.letter import DeadLetter
    from engine.explain import Explanation
    from engine.message import Message, Record

__all__ = ["claimed", "journaled", "letter_reason", "outcome", "outcomes", "routed", "sent", "settled_by"]

_LONGEST = 300
"""Number of characters to which a value or predicate is cut."""


def sent(message: Message) -> str:
    """The ids and addresses that a message carries."""
    named = {
        "": "JMSMessageID",
        "to ": "JMSDestination",
        "correlation id ": "JMSCorrelationID",
        "reply to ": "JMSReplyTo",
    }
    texts = [
        f"{label}{shortened(text, _LONGEST)}" for label, name in named.items() if (text := message.headers.get(name))
    ]
    return ", ".join(texts) or "without a message id"


def journaled(record: Record, message: Message) -> str:
    """The source that wrote a journal record, and the circumstances that the record tells."""
    parts = [f"by source '{message.source}'" if message.source else "by no source of the bridge"]
    if replays := record.header(REPLAYS):
        parts = [f"by replay {shortened(replays, _LONGEST)} of a dead letter, taken from source '{message.source}'"]
    count = message.text_of("JMSXDeliveryCount")
    if message.headers.get("JMSRedelivered") == "true" or (count or "1") != "1":
        parts.append("redelivered by the broker" + (f" (delivery {shortened(count, _LONGEST)})" if count else ""))
    if message.origins:
        parts.append(f"routed before by {', '.join(message.origins)}")
    if trace := record.header(TRACEPARENT):
        parts.append(f"trace {shortened(trace, _LONGEST)}")
    return ", ".join(parts)


def routed(explanation: Explanation) -> str:
    """The routes that take a message, with their predicates and keys; the reason if it is not routed at all."""
    if explanation.publication is None:
        return outcome(explanation).removeprefix("not routed: ")
    parts = [
        f"route '{step.route.name}' takes it: {shortened(step.include.text, _LONGEST)}"
        for step in explanation.steps
        if step.wanted
    ]
    if others := sum(not step.wanted and not step.route.added for step in explanation.steps):
        parts.append(f"{others} other route{' was' if others == 1 else 's were'} tried and did not")
    return "; ".join(parts)


def outcome(explanation: Explanation) -> str:
    """The outcome of one publication of a message, in a sentence."""
    return result(explanation).removesuffix(", with headers")


def outcomes(explanation: Explanation) -> list[str]:
    """The outcome of each publication of a message, in sentences."""
    return list(map(outcome, explanation.publications))


def claimed(record: Record) -> str:
    """The file with the body of a published record, as the end of a sentence; empty if the record has its body."""
    try:
        claim = Claim.of(record.headers)
    except ValueError as error:
        return f"; {error}"
    return "" if claim is None else f"; its body of {claim.size:,} bytes is the file {claim.file} in claim-check.folder"


def letter_reason(letter: DeadLetter) -> str:
    """The reason of a dead letter, with the part of the bridge and the route in which the message failed."""
    where = f"sink '{letter.sink}' could not deliver it" if letter.sink else ""
    if not where:
        where = f"failed in route '{letter.route}'" if letter.route else "no route"
    if letter.target:
        where += f" for {letter.target}"
    detail = f" ({letter.detail})" if letter.detail else ""
    return f"{letter.reason}{detail}: {where}"


def settled_by(entry: AuditEntry) -> str:
    """The user, host and command that settled a dead letter."""
    actor = entry.actor
    who = f"by {actor.user or 'an unknown user'}" + (f" on {actor.host}" if actor.host else "")
    command = f", with: {shortened(actor.command, _LONGEST)}" if actor.command else ""
    doubt = "; but this bridge has not sealed that entry" if entry.is_doubtful else ""
    return f"{who}{command}{doubt}"
