"""Number of large orders of each key, minute by minute: an example for the chart beside it.

Reads `orders.large`, to which a route of `orders.properties` publishes, and writes `orders.large.counts`.
Both topics have to exist.
"""

from engine.streams import StreamsBuilder, TimeWindows, Topology


def build() -> Topology:
    """The topology."""
    builder = StreamsBuilder("order-counts")
    windows = TimeWindows.of("1 minute", grace="10 s")
    counts = builder.stream("orders.large").group_by_key().windowed_by(windows).count("large-orders")
    counts.to_stream().to("orders.large.counts")
    return builder.build()
