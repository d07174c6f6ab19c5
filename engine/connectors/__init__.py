"""Connectors: one folder for each external system, with a source and a sink.

All implement the contracts in `base`; `source_loop` and `sink_loop` run them. To add a system: its folder, an entry in
`SOURCES` and in `SINKS`, a page in `docs/connectors`, and a harness in the conformance suite
(`tests/integration/connectors`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from routes.targets import System

if TYPE_CHECKING:
    from engine.connectors.base import Sink, Source
    from routes.model import Config, SinkConfig, SourceConfig

__all__ = ["REPLIES", "SINKS", "SOURCES", "MakeSink", "MakeSource"]

MakeSource = Callable[["Config", "SourceConfig", int], "Source"]
"""Makes the source for one worker of `source.NAME`, not yet connected; workers count from 1."""

MakeSink = Callable[["Config", "SinkConfig", int], "Sink"]
"""Makes the sink for one worker of `sink.NAME`, not yet connected; workers count from 1."""


# Each function imports its connector itself, so that a system's client library is loaded only in processes that use it.


def _stomp_source(config: Config, source: SourceConfig, worker: int) -> Source:
    from engine.connectors.stomp.source import StompSource

    return StompSource(config, source, worker)


def _stomp_sink(config: Config, sink: SinkConfig, worker: int) -> Sink:
    from engine.connectors.stomp.sink import StompSink

    return StompSink(config, sink, worker)


def _amqp_source(config: Config, source: SourceConfig, worker: int) -> Source:
    from engine.connectors.amqp.source import AmqpSource
    from engine.connectors.amqp_listener.source import AmqpListenerSource

    if source.listen:
        return AmqpListenerSource(config, source, worker)
    return AmqpSource(config, source, worker)


def _amqp_sink(config: Config, sink: SinkConfig, worker: int) -> Sink:
    from engine.connectors.amqp.sink import AmqpSink
    from engine.connectors.amqp_listener.sink import AmqpListenerSink

    if sink.listen:
        return AmqpListenerSink(config, sink, worker)
    return AmqpSink(config, sink, worker)


def _nats_source(config: Config, source: SourceConfig, worker: int) -> Source:
    from engine.connectors.nats.source import NatsSource

    return NatsSource(config, source, worker)


def _nats_replies(config: Config, source: SourceConfig, worker: int) -> Source:
    from engine.connectors.nats.replies import NatsReplies

    return NatsReplies(config, source, worker)


def _nats_sink(config: Config, sink: SinkConfig, worker: int) -> Sink:
    from engine.connectors.nats.sink import NatsSink

    return NatsSink(config, sink, worker)


def _kafka_source(config: Config, source: SourceConfig, worker: int) -> Source:
    from engine.connectors.kafka.source import KafkaSource

    return KafkaSource(config, source, worker)


def _dropbox_source(config: Config, source: SourceConfig, worker: int) -> Source:
    from engine.connectors.dropbox.source import DropboxSource

    return DropboxSource(config, source, worker)


def _dropbox_sink(config: Config, sink: SinkConfig, worker: int) -> Sink:
    from engine.connectors.dropbox.sink import DropboxSink

    return DropboxSink(config, sink, worker)


SOURCES: Mapping[System, MakeSource] = {
    System.STOMP: _stomp_source,
    System.AMQP: _amqp_source,
    System.NATS: _nats_source,
    System.KAFKA: _kafka_source,
    System.DROPBOX: _dropbox_source,
}
"""Makers of sources, by `source.NAME.type`."""

REPLIES: Mapping[System, MakeSource] = {
    System.STOMP: _stomp_source,
    System.AMQP: _amqp_source,
    System.NATS: _nats_replies,
    System.DROPBOX: _dropbox_source,
}
"""Makers of the sources that receive replies for a sink, by `sink.NAME.type`."""

SINKS: Mapping[System, MakeSink] = {
    System.STOMP: _stomp_sink,
    System.AMQP: _amqp_sink,
    System.NATS: _nats_sink,
    System.DROPBOX: _dropbox_sink,
}
"""Makers of sinks, by `sink.NAME.type`."""
