"""The workloads in Quix Streams, exactly once; two processes of one consumer group share the partitions."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from quixstreams import Application, State

from bench.python_engines.programs import arguments
from bench.python_engines.rule import FIELDS, scored

if TYPE_CHECKING:
    from quixstreams.dataframe import StreamingDataFrame


def _counted(word: str, state: State) -> dict[str, Any]:
    count = state.get("count", 0) + 1
    state.set("count", count)
    return {"word": word, "count": count}


def _windowed(window: dict[str, Any], key: str, *_: object) -> dict[str, Any]:
    return {"key": key, "start": window["start"], "count": window["value"]}


def _scored(value: bytes) -> dict[str, Any]:
    event = json.loads(value)
    return dict(zip(FIELDS, scored(event["user"], event["url"], event["cents"]), strict=True))


def _words(lines: StreamingDataFrame) -> StreamingDataFrame:
    words = lines.apply(lambda line: line.decode().split(" "), expand=True)
    by_word = words.group_by(lambda word: word, name="word", value_serializer="str", value_deserializer="str")
    return by_word.apply(_counted, stateful=True)


def _windows(events: StreamingDataFrame) -> StreamingDataFrame:
    windows = events.tumbling_window(timedelta(seconds=10), grace_ms=timedelta(seconds=10))
    return windows.count().final().apply(_windowed, metadata=True)


def _function(events: StreamingDataFrame) -> StreamingDataFrame:
    return events.apply(_scored)


_STEPS = {"words": _words, "windows": _windows, "function": _function}


def main() -> None:
    """Runs until it is ended."""
    given = arguments()
    application = Application(
        broker_address=given["bootstrap"],
        consumer_group=given["group"],
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
        commit_interval=2.0,
        state_dir=given["state"],
        producer_extra_config={"linger.ms": 50, "batch.size": 1 << 18},
        loglevel="WARNING",
    )
    source = application.topic(given["input"], key_deserializer="str", value_deserializer="bytes")
    sink = application.topic(given["output"], key_serializer="str", value_serializer="json")
    records = application.dataframe(source)
    _STEPS[given["workload"]](records).to_topic(sink)
    application.run()


if __name__ == "__main__":
    main()
