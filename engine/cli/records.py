"""Records and messages on the screen: a readable block for people, one JSON object for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.cli.output import BodyFormat, json_bytes, show_bytes, show_time
from engine.printable import json_text, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.kafka.reader import LocatedRecord
    from engine.message import Record

__all__ = ["Item", "as_json", "as_text", "record_json", "record_lines"]

_SHOWN_BYTES = 4096
_SHOWN_HEADERS = 60
_WIDTH = 40


@dataclass(frozen=True, slots=True)
class Item:
    """Something to show: a record and where it was found."""

    title: str
    """The first line for people."""
    place: Mapping[str, Any]
    """The first members of the JSON object."""
    record: Record

    @staticmethod
    def of(located: LocatedRecord) -> Item:
        """A record of a Kafka topic."""
        at, time = located.position, show_time(located.time_ms)
        place = {"topic": at.topic, "partition": at.partition, "offset": at.offset, "time": time}
        return Item(f"{at}  {time}", place, located.record)


def as_text(item: Item, form: BodyFormat = BodyFormat.HEX) -> str:
    """A block of lines: the title, key, headers and body."""
    return "\n".join([printable(item.title), *record_lines(item.record, form), ""])


def record_lines(record: Record, form: BodyFormat = BodyFormat.HEX) -> list[str]:
    """Key, each header and the body, aligned; long values are cut."""
    shown = record.headers[:_SHOWN_HEADERS]
    width = min(max((len(name) for name, _ in shown), default=4), _WIDTH)

    def line(name: str, value: bytes | None) -> str:
        return f"  {printable(name):<{width}}  {printable(show_bytes(value, form, _SHOWN_BYTES))}"

    lines = [] if record.key is None else [line("key", record.key)]
    lines += [line(name, value) for name, value in shown]
    if len(record.headers) > len(shown):
        lines.append(f"  … {len(record.headers) - len(shown)} headers more (--json shows all)")
    size = len(record.value or b"")
    lines.append(f"  {'body':<{width}}  {size} byte{'' if size == 1 else 's'}")
    return lines + [f"    {text}" for text in printable(show_bytes(record.value, form, _SHOWN_BYTES)).splitlines()]


def as_json(item: Item) -> str:
    """A record as a line of JSON, with `body_base64` and `value_base64` for bytes that are not UTF-8."""
    return json_text({**item.place, **record_json(item.record)})


def record_json(record: Record) -> dict[str, Any]:
    """Key, headers (a list: order and repeated names matter) and body, nothing cut."""
    return {
        **json_bytes("key", record.key),
        "headers": [{"name": name, **json_bytes("value", value)} for name, value in record.headers],
        **json_bytes("body", record.value),
    }
