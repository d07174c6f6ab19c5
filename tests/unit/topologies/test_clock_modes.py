"""Modes of topologies that follow the clock: in real time the clock may not be ahead of another topic."""

from __future__ import annotations

import pytest

from engine.errors import UsageError
from engine.streams import StreamsBuilder, TimeWindows
from engine.topologies.runtime.layout import Layout, lay_out
from engine.topologies.runtime.settings import Guarantee, TopologySettings, mode_of


def layout(*, is_moved: bool) -> Layout:
    """Windows that the clock closes, behind an internal topic if the key is changed."""
    builder = StreamsBuilder("modes")
    stream = builder.stream("in")
    keyed = stream.select_key("value") if is_moved else stream
    windows = TimeWindows.of("1 s")
    keyed.group_by_key().windowed_by(windows).count("counts").suppress(close="clock").to("out")
    return lay_out(builder.build(), {"in": 2})


def test_one_topic_is_read_in_real_time() -> None:
    assert mode_of(TopologySettings("a:b"), layout(is_moved=False)) == "realtime"


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_several_topics_are_read_in_batches(guarantee: Guarantee) -> None:
    found = layout(is_moved=True)
    assert mode_of(TopologySettings("a:b", guarantee=guarantee), found) == "batch"
    with pytest.raises(UsageError, match="'counts': the clock could be ahead of records") as caught:
        mode_of(TopologySettings("a:b", mode="realtime", guarantee=guarantee), found)
    assert "use --mode batch, or read one topic alone" in str(caught.value)
