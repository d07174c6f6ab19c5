"""Alerts for cards: a small payment, as thieves try a card with, and a large one within a minute of it.

Reads `payments` (key: the card, `{"amount": 0.5}`), writes `alerts`.
"""

from collections.abc import Iterator
from typing import Any

from engine.streams import InputRecord, ProcessorContext, StreamsBuilder, Topology, json

SMALL, LARGE = 1.0, 500.0
WITHIN_MS = 60_000


def watch(payment: InputRecord, card: ProcessorContext) -> Iterator[dict[str, Any]]:
    """Yields an alert for a large payment while a small one is remembered."""
    if payment.value is None:
        return
    amount = payment.value["amount"]
    if amount >= LARGE and card.state is not None:
        yield {"trial": card.state["amount"], "amount": amount}
    if amount <= SMALL:
        forget_at = payment.timestamp + WITHIN_MS
        card.state = {"amount": amount, "until": forget_at}
        card.schedule(forget_at)


def forget(card: ProcessorContext, time: int) -> None:
    """Forgets a small payment, unless there was another one since."""
    if card.state is not None and card.state["until"] <= time:
        card.state = None


def build() -> Topology:
    """The topology."""
    builder = StreamsBuilder("card-fraud")
    payments = builder.stream("payments", value=json("amount double"))
    alerts = payments.process(
        watch,
        on_timer=forget,
        fields="trial double, amount double",
        state="amount double, until bigint",
        name="trials",
    )
    alerts.to("alerts")
    return builder.build()
