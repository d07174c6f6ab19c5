"""Sink for any JMS broker, by its own client in a child process, which sends each batch in one transaction."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from engine.connectors.base import NotConnectedError, Outcome, RefusedError
from engine.connectors.jms_client.message import encoded
from engine.connectors.jms_client.process import ClientProcess, connection_settings, texts_at
from engine.connectors.jms_client.providers import provider_of
from engine.connectors.position_sink import position_owner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.base import Outgoing
    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.jms_client.settings import JmsClientSinkConfig

__all__ = ["JmsClientSink"]

_SEND, _OUTCOMES = ord("S"), ord("O")


class JmsClientSink:
    """Sink of one worker: a child process with one connection."""

    most_under_way = 1_000
    """Two batches. After a crash so many may have to be sent one by one."""
    settle_seconds = 11.0
    """Wait as for STOMP: Artemis may take ten seconds to put messages of a cut connection into their queue."""

    def __init__(self, endpoint: SystemEndpoint[JmsClientSinkConfig], worker: int) -> None:
        """Sets up the sink without connecting."""
        self._endpoint = endpoint
        self._sink = endpoint.settings
        self._worker = worker
        self._process = ClientProcess(endpoint)
        self._known: list[Outcome] = []
        self._open: set[int] = set()
        self._ends: dict[int, int] = {}
        """Greatest end known of each partition, kept over connections: no position lies behind it."""
        self._seals_positions = False

    @property
    def address(self) -> str:
        """Connection factory and its properties."""
        return self._endpoint.url

    def connect(self) -> None:
        """Starts the child process and connects; raises as `ClientProcess.start`."""
        self._known.clear()
        self._open.clear()
        given = {**connection_settings(self._sink, self._worker), "role": "sink"}
        if (name := self._sink.duplicate_id or provider_of(self._sink).duplicate_id) is not None:
            given["duplicate-id"] = name
        if self._sink.position_queue is not None:
            given["position-queue"] = self._sink.position_queue
            given["position-owner"] = position_owner(self._endpoint)
            keys = self._endpoint.position_keys()
            self._seals_positions = bool(keys)
            given["position-keys"] = " ".join(key.hex() for key in keys)
        self._process.start(given)

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Hands all messages over, in as many batches as the provider's transactions need."""
        if self.holds_partitions and not self._seals_positions and not self._open and self._endpoint.position_keys():
            raise NotConnectedError("the bridge has a secret now, so the client starts again to seal its positions")
        found = []
        for each in messages:
            self._ends[each.partition] = max(self._ends.get(each.partition, 0), each.end)
        for each in messages:
            try:
                found.append(encoded(each, self._place(each)))
            except RefusedError as error:
                self._known.append(Outcome(each.number, str(error)))
            else:
                self._open.add(each.number)
        most_sent = self._sink.batch or provider_of(self._sink).most_sent
        try:
            for batch in (found[begin : begin + most_sent] for begin in range(0, len(found), most_sent)):
                self._process.write(_SEND, struct.pack(">I", len(batch)) + b"".join(batch))
        except NotConnectedError as error:
            raise self._lost(error) from None

    def outcomes(self, timeout_seconds: float) -> Sequence[Outcome]:
        """Returns the results of batches."""
        try:
            while frame := self._process.next(0 if self._known else timeout_seconds):
                if frame.kind == _OUTCOMES:
                    values = texts_at(frame.content, 0)[0]
                    for number, refusal in zip(values[::2], values[1::2], strict=True):
                        self._open.discard(int(number))
                        self._known.append(Outcome(int(number), refusal or None))
        except NotConnectedError as error:
            if not self._known:
                raise self._lost(error) from None
        known, self._known = self._known, []
        return known

    def close(self) -> None:
        """Ends the connection, after the batches that are on their way."""
        self._process.close()

    @property
    def holds_partitions(self) -> bool:
        """See `Exclusive`: the client has received the positions of its partitions, maybe ahead of their use."""
        return self._sink.position_queue is not None

    def _place(self, outgoing: Outgoing) -> str:
        if self._sink.position_queue is None or outgoing.partition < 0:
            return ""
        end = self._ends[outgoing.partition]
        return f"{outgoing.partition} {outgoing.offset} {outgoing.timestamp_ms} {end}"

    def _lost(self, error: NotConnectedError) -> NotConnectedError:
        """Returns the error for a lost connection; its back-off lets messages in doubt settle."""
        return NotConnectedError(str(error), self.settle_seconds if self._open else error.back_off_seconds)
