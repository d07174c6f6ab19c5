"""Values that a key inherits when the file does not set it, as the notes in the field table say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from routes.model import RouterMode
from routes.targets import sink_topic, state_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from routes.config.binding import Settings

__all__ = ["effective"]

_BATCH_INTERVAL_SECONDS = 1.0
_REALTIME_INTERVAL_SECONDS = 120.0


def effective(settings: Settings, key: str, name: str = "") -> Any:
    """Returns the value in force: the one set, else the default, else the inherited one; None without any."""
    value = settings.get(key, name)
    return _INHERITED[key](settings, name) if value is None and key in _INHERITED else value


def _interval(settings: Settings, _: str) -> float:
    realtime = settings.get("router.mode") is RouterMode.REALTIME
    return _REALTIME_INTERVAL_SECONDS if realtime else _BATCH_INTERVAL_SECONDS


_INHERITED: Mapping[str, Callable[[Settings, str], Any]] = {
    "routes.NAME.name": lambda _, name: name,
    "routes.NAME.on-soft-failure": lambda settings, _: settings.get("routing.on-soft-failure"),
    "sink.NAME.topic": lambda _, name: sink_topic(name),
    "journal.state-topic": lambda settings, _: state_topic(settings.get("journal.topic")),
    "router.interval": _interval,
}
