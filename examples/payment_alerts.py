"""Alerts: a customer whose payments exceed 10,000 within a minute, from a JMS queue to NATS.

Reads the bridge's journal, whose headers are the properties of the JMS messages (`jms.customer`, `jms.amount`), and
writes `payment-alerts`, once for each customer and minute. `payment_alerts.properties` beside this file is the whole
way: queue, journal, this topology, its topic as a source of the bridge, and a route to NATS.
"""

from engine.streams import StreamsBuilder, TimeWindows, Topology, binary


def build() -> Topology:
    """The topology."""
    builder = StreamsBuilder("payment-alerts")
    messages = builder.stream("jms-bridge.journal", value=binary())
    payments = messages.filter(lambda row: row.header("jms.JMSDestination") == "queue:payments").map_values(
        customer=lambda row: row.header("jms.customer"), amount=lambda row: row.header("jms.amount").cast("double")
    )
    minutes = payments.group_by("customer").windowed_by(TimeWindows.of("1 minute", grace="10 s"))
    totals = minutes.aggregate("totals", total="sum(amount)", latest="last(amount)")
    # The payment with which the total exceeds the limit, and none of those after it.
    exceeded = totals.to_stream().filter("total > 10000 AND total - latest <= 10000")
    exceeded.map_values(customer="key", total="total", minute="window_start").to("payment-alerts")
    return builder.build()
