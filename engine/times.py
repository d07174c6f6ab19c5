"""Times as people write and read them: ISO 8601, milliseconds since 1970, or how long ago they were."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from engine.errors import UsageError
from routes.keys.values import BadValueError, duration

__all__ = ["iso", "milliseconds", "read_moment", "read_time"]

_AGO = duration("1ms", "36500d")
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def milliseconds(text: str) -> int | None:
    """Converts an ISO 8601 time to milliseconds since 1970, UTC if it names no zone; None if the text is not a time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def iso(milliseconds: int) -> str:
    """A Kafka timestamp in ISO 8601, UTC; as a number if it is beyond the calendar: its producer may write anything."""
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError):
        return str(milliseconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_time(text: str) -> int:
    """Milliseconds since 1970: a whole number is that, other text is a time of ISO 8601; UsageError for no time."""
    number = int(text) if re.fullmatch(r"-?[0-9]{1,20}", text) else milliseconds(text)
    if number is None or not _LEAST <= number <= _MOST:
        msg = (
            f"{text!r} is not a time: expected 2026-01-01T12:00:00Z, or milliseconds since 1970 as a number of 64 bits"
        )
        raise UsageError(msg)
    return number


def read_moment(name: str, text: str, now_ms: int) -> int:
    """A time, or how long ago it was, in milliseconds since 1970; UsageError with the name of the field for neither."""
    moment = milliseconds(text)
    if moment is not None:
        return moment
    try:
        return now_ms - round(float(_AGO.parse(text)) * 1000)
    except BadValueError as error:
        msg = f"{name} {text!r}: expected a time, as 2026-11-22T06:00:00Z, or how long ago, as 30s, 5m, 2h or 7d"
        raise UsageError(msg) from error
