"""Rate at which one core encodes and decodes small messages, and converts them to canonical messages and back.

Bridge frames of NATS, and AMQP messages such as a JMS client sends.

It needs no broker. All steps take turns, block by block, so that a machine whose speed varies slows down all of them.
Seconds are those of CPU: waiting for a core that others use does not count, what they take of its caches does, so
the best block tells most about the code and the median about the machine as well.
"""

from __future__ import annotations

from statistics import median
from time import process_time
from typing import TYPE_CHECKING, Any

from bench.report import Check, Report, table
from engine.connectors.amqp.codec import sections
from engine.connectors.amqp.codec.sections import VALUE, Header, Properties, Sections
from engine.connectors.amqp.codec.values import AmqpMap, Byte, Symbol, Timestamp
from engine.connectors.amqp.transformer_settings import TransformerSettings
from engine.connectors.amqp.transformers import inbound, outbound
from engine.connectors.nats import json_frame, typed_frame
from engine.connectors.nats.header_frame import HeaderFrame, from_message, to_message
from engine.message import Message
from routes.properties import JmsType, Property

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.options import Options

__all__ = ["measure"]

TARGET = 100_000
"""Messages a second, each way in each format."""
_CODECS = {"json": json_frame, "typed": typed_frame}
_CHECKED = (*_CODECS, "amqp")
_MESSAGES = 5_000
_BLOCKS = 10
"""Number of blocks in each round."""
_BODY_BYTES = 100

Step = tuple["Callable[[Any], Any]", "Sequence[Any]"]
"""Function that is timed, and the arguments of its calls, one by one."""


def measure(options: Options) -> Report:
    """Measures every step in turn, in blocks."""
    steps = _steps([_frame(number) for number in range(_MESSAGES)])
    steps |= _amqp_steps([_sections(number) for number in range(_MESSAGES)])
    rates: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(options.rounds * _BLOCKS):
        for name, step in steps.items():
            rates[name].append(_rate(step))
    rows = [[name, f"{max(found):,.0f}", f"{median(found):,.0f}"] for name, found in rates.items()]
    checks = [
        Check(f"codecs, {name}: thousand messages/s", max(found) / 1000, TARGET / 1000, at_least=True)
        for name, found in rates.items()
        if name.split()[0] in _CHECKED
    ]
    title = "Codecs, messages/s on one core"
    return Report("codecs", [table(title, ["", "best", "median"], rows)], checks, rates)


def _steps(frames: Sequence[HeaderFrame]) -> dict[str, Step]:
    steps: dict[str, Step] = {}
    for name, codec in _CODECS.items():
        encoded = [codec.encode(frame) for frame in frames]
        if [codec.decode(data) for data in encoded] != frames:
            raise RuntimeError(f"{name} frames do not come back as they were")
        steps |= {f"{name} encode": (codec.encode, frames), f"{name} decode": (codec.decode, encoded)}
    messages = [to_message(frame, "bench") for frame in frames]
    return steps | {
        "frame to message": (to_message, frames),
        "message to frame": (from_message, messages),
        "message to record": (Message.to_record, messages),
    }


def _amqp_steps(messages: Sequence[Sections]) -> dict[str, Step]:
    encoded = [sections.encode_sections(message) for message in messages]
    if [sections.decode(data) for data in encoded] != messages:
        raise RuntimeError("AMQP messages do not come back as they were")
    reader, writer = inbound(TransformerSettings()), outbound(TransformerSettings())
    canonical = [reader.to_message(data, 0, "queue:orders", "bench") for data in encoded]
    return {
        "amqp encode": (sections.encode_sections, messages),
        "amqp decode": (sections.decode, encoded),
        "AMQP to message": (lambda data: reader.to_message(data, 0, "queue:orders", "bench"), encoded),
        "message to AMQP": (lambda message: writer.encoded(message, "queue/orders", None), canonical),
    }


def _sections(number: int) -> Sections:
    """Sections of frame `number` as the TextMessage of a JMS client."""
    return Sections(
        Header(durable=True),
        message_annotations=AmqpMap([(Symbol("x-opt-jms-msg-type"), Byte(5)), (Symbol("x-opt-jms-dest"), Byte(0))]),
        properties=Properties(
            message_id=f"ID:bench-1-1-1:1:1-{number}",
            to="orders",
            creation_time=Timestamp(1_795_240_301_012 + number),
        ),
        application_properties=AmqpMap(
            [
                ("region", ("emea", "apac", "amer")[number % 3]),
                ("amount", number + 0.25),
                ("urgent", number % 2 == 1),
            ]
        ),
        body=VALUE,
        content=f"order {number} ".ljust(_BODY_BYTES, "."),
    )


def _frame(number: int) -> HeaderFrame:
    """Two JMS fields, a property of each common type, and a short text."""
    headers = {
        "BRIDGE_timestamp": Property(str(1_795_240_301_012 + number), JmsType.LONG),
        "BRIDGE_mode": Property("2", JmsType.INT),
        "region": Property(("emea", "apac", "amer")[number % 3], JmsType.STRING),
        "amount": Property(str(number + 0.25), JmsType.DOUBLE),
        "urgent": Property("true" if number % 2 else "false", JmsType.BOOLEAN),
    }
    return HeaderFrame(f"order {number} ".encode().ljust(_BODY_BYTES, b"."), headers)


def _rate(step: Step) -> float:
    """Calls per second of CPU."""
    call, values = step
    start = process_time()
    for value in values:
        call(value)
    return len(values) / (process_time() - start)
