"""A router of JMS messages: the journal's messages by their properties, in a few lines.

Reads the bridge's journal, whose headers are the messages' JMS fields (`jms.JMSType`) and properties (`jms.region`);
writes the topics `orders-emea`, `orders-other` and `other`. Values and headers are those of the messages.
"""

from pyspark.sql import Column

from engine.streams import Row, StreamsBuilder, Topology, binary


def _is_european(row: Row) -> Column:
    return (row.header("jms.JMSType") == "order") & (row.header("jms.region") == "emea")


def build() -> Topology:
    """The topology."""
    builder = StreamsBuilder("journal-router")
    messages = builder.stream("jms-bridge.journal", value=binary())
    routes = messages.split("routes")
    european, orders, other = (
        routes.branch(_is_european, name="european")
        .branch(lambda row: row.header("jms.JMSType") == "order", name="orders")
        .default_branch("other")
    )
    european.select_key(lambda row: row.header("jms.JMSCorrelationID")).to("orders-emea")
    orders.to("orders-other")
    other.to("other")
    return builder.build()
