"""Sets up the log on stderr of each process of the bridge, and keeps secrets out of it.

The log has one line for each event, for people, or JSON with `JMS_BRIDGE_LOG=json`. `JMS_BRIDGE_LOG_LEVEL` is `info`
unless set. Lines of libraries that use Python's own `logging` have the same form, from warnings up. Repeated lines are
limited, see `engine.telemetry.log_limit`. Metrics and states do not go through here, see `engine.telemetry.status`.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
from typing import TYPE_CHECKING

import structlog

from engine.errors import UsageError
from engine.kafka.security import read_jaas
from engine.printable import LONGEST_LINE, json_text, printable, shortened
from engine.telemetry.log_limit import Limiter
from routes.keys.secrets import MASK, Secret, is_secret_key, mask
from routes.keys.table import secrets_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from structlog.typing import EventDict, Processor

    from routes.model import Config

__all__ = ["Redactor", "is_json", "secrets_of", "setup"]

_LEVELS = ("debug", "info", "warning", "error")
_LIMITER = Limiter()
"""The only limiter of the process; it stays when the configuration changes."""
atexit.register(_LIMITER.flush)


class Redactor:
    """Masks known secrets wherever they stand in a text, and the values of fields whose names are those of secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = frozenset(secrets)

    def __call__(self, text: str) -> str:
        """Returns the text with the secrets masked, see `mask`."""
        return mask(text, self._secrets)

    def processor(self, _logger: object, _method: str, event: EventDict) -> EventDict:
        """Masks the secrets in a log event; a processor for structlog, the last before the event becomes text."""
        return {key: MASK if is_secret_key(str(key)) else self._clean(value) for key, value in event.items()}

    def _clean(self, value: object) -> object:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, dict):
            return self.processor(None, "", value)
        if isinstance(value, list | tuple):
            return [self._clean(item) for item in value]
        return self(str(value))


def setup(config: Config | None = None, component: str = "") -> None:
    """Sets up the log of this process; called as soon as its configuration is known, and when that changes.

    `component` is the part of the bridge that this process is; each line carries it, unless the line names another one.
    """
    redactor = Redactor(secrets_of(config) if config else ())

    def add_component(_logger: object, _method: str, event: EventDict) -> EventDict:
        return {"component": component, **event} if component else event

    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S" if sys.stderr.isatty() else "iso", utc=False),
        structlog.processors.format_exc_info,
        redactor.processor,
        _bounded,
        *([] if is_json() else [_safe]),
    ]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.add_logger_name, add_component, *shared],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _renderer()],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    # py4j logs, with their stacks, the errors that it also raises.
    handler.addFilter(lambda record: "py4j" not in record.pathname)
    handler.addFilter(_LIMITER.filter)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    for package in ("engine", "routes"):
        logging.getLogger(package).setLevel(_level())
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            add_component,
            _LIMITER.processor,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def secrets_of(config: Config) -> frozenset[str]:
    """All secret values of a configuration, which must not be shown."""
    return frozenset(_secrets(config))


def _secrets(config: Config) -> Iterator[str]:
    for settings in (config, *config.sections.values(), *config.brokers, *config.routes):
        yield from secrets_in(settings)
    for table in (config.kafka.common, config.kafka.producer, config.kafka.consumer):
        if login := table.get("sasl.jaas.config"):
            yield from (value for value in read_jaas(login).values() if isinstance(value, Secret))


def is_json() -> bool:
    """True if the log is JSON: `JMS_BRIDGE_LOG=json`."""
    return os.environ.get("JMS_BRIDGE_LOG") == "json"


def _renderer() -> Processor:
    if is_json():
        return structlog.processors.JSONRenderer(lambda event, **_: json_text(event))
    return structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(),
        exception_formatter=structlog.dev.plain_traceback,
    )


def _bounded(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Cuts the texts of an event, which may be those of a sender or of a broker; stacks of exceptions are whole."""
    return {key: value if key == "exception" else _cut(value) for key, value in event.items()}


def _cut(value: object) -> object:
    if isinstance(value, str):
        return shortened(value, LONGEST_LINE)
    return [_cut(each) for each in value] if isinstance(value, list) else value


def _safe(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Escapes control characters in the texts of an event, for terminals that show the log."""
    return {key: printable(value) if isinstance(value, str) else value for key, value in event.items()}


def _level() -> int:
    name = os.environ.get("JMS_BRIDGE_LOG_LEVEL", "info").lower()
    if name not in _LEVELS:
        message = f"JMS_BRIDGE_LOG_LEVEL={name}: expected one of {', '.join(_LEVELS)}"
        raise UsageError(message)
    return logging.getLevelNamesMapping()[name.upper()]
