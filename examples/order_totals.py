"""Windowed totals of the orders of good customers, minute by minute.

Reads `orders` (`{"customer": "ann", "amount": 5.5}`) and the table `customers` (key `ann`,
`{"name": "Ann", "level": "gold"}`), writes `gold-totals`.
"""

from engine.streams import StreamsBuilder, TimeWindows, Topology, json


def build() -> Topology:
    """The topology."""
    builder = StreamsBuilder("order-totals")
    orders = builder.stream("orders", value=json("customer string, amount double"))
    customers = builder.table("customers", value=json("name string, level string"))
    gold = orders.join(customers, on="customer").filter("level = 'gold'")
    windows = TimeWindows.of("1 minute", grace="10 s")
    totals = gold.group_by("customer").windowed_by(windows).aggregate("totals", total="sum(amount)")
    totals.to_stream().to("gold-totals")
    return builder.build()
