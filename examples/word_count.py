"""Word count: how often each word has come in the lines of a topic.

Reads `lines` (text), writes `words`: the word as key, `{"count": 3}` as value.
"""

from engine.streams import StreamsBuilder, Topology, text


def build() -> Topology:
    """The topology."""
    builder = StreamsBuilder("word-count")
    lines = builder.stream("lines", value=text())
    words = lines.flat_map("filter(split(lower(value), '[^\\\\w]+'), word -> word <> '')", name="words")
    words.group_by("value").count(name="counts").to_stream().to("words")
    return builder.build()
