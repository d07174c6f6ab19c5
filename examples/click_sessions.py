"""Sessions of clicks: how many pages each visitor saw, and for how long, once the session has ended.

Reads `clicks` (key: the visitor, `{"page": "/home"}`), writes `sessions`.
"""

from engine.streams import SessionWindows, StreamsBuilder, Topology, json


def build() -> Topology:
    """The topology."""
    builder = StreamsBuilder("click-sessions")
    clicks = builder.stream("clicks", value=json("page string"))
    sessions = clicks.group_by_key().windowed_by(SessionWindows.of("30 minutes"))
    ended = sessions.aggregate("sessions", pages="count(1)", first="min_by(page, timestamp)").suppress().to_stream()
    ended.map_values(
        pages="pages", first="first", seconds="unix_timestamp(window_end) - unix_timestamp(window_start)"
    ).to("sessions")
    return builder.build()
