"""Deduplication: the first of the payments with one id within ten minutes.

Reads `payments` (`{"id": "a7", "amount": 3.5}`), writes `payments-once`.
"""

from engine.streams import StreamsBuilder, Topology, json


def build() -> Topology:
    """The topology."""
    builder = StreamsBuilder("deduplication")
    payments = builder.stream("payments", value=json("id string, amount double"))
    payments.select_key("id").deduplicate(within="10 minutes").to("payments-once")
    return builder.build()
