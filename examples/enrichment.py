"""Enrichment of payments by a table of accounts; payments of unknown accounts go to a topic of their own.

Reads `payments` (`{"account": "7", "amount": 12.5}`) and the table `accounts` (key `7`, `{"owner": "Ann"}`), writes
`payments-enriched` and `payments-unknown`.
"""

from engine.streams import StreamsBuilder, Topology, json


def build() -> Topology:
    """The topology."""
    builder = StreamsBuilder("enrichment")
    payments = builder.stream("payments", value=json("account string, amount double"))
    accounts = builder.table("accounts", value=json("owner string"))
    enriched = payments.left_join(accounts, on="account")
    known, unknown = enriched.split("is-known").branch("owner IS NOT NULL", name="known").default_branch("unknown")
    known.to("payments-enriched")
    unknown.map_values(account="account", amount="amount").to("payments-unknown")
    return builder.build()
