"""Totals of what comes through each JMS queue, minute by minute.

Reads the bridge's journal, whose headers are the properties of the JMS messages, and adds up their property `amount`.
The totals are a table that others can read in the topic `queue-totals`, which the topology creates.
"""

from engine.streams import StreamsBuilder, TimeWindows, Topology


def build() -> Topology:
    """The topology."""
    builder = StreamsBuilder("queue-totals")
    journal = builder.stream("jms-bridge.journal")
    # A dead letter that was replayed is in the journal a second time.
    messages = journal.filter(lambda row: row.header("jmsbridge.replays").isNull())
    amounts = messages.map_values(
        queue=lambda row: row.header("jms.JMSDestination"), amount=lambda row: row.header("jms.amount").cast("double")
    )
    minutes = amounts.filter("amount IS NOT NULL").group_by("queue").windowed_by(TimeWindows.of("1 minute"))
    minutes.aggregate("totals", total="sum(amount)").changelog("queue-totals")
    return builder.build()
