"""The progress of a bridge as log events, for `JMS_BRIDGE_LOG=json`, where nothing is printed."""

from __future__ import annotations

import time
from importlib import metadata
from typing import TYPE_CHECKING

import structlog
from rich.console import Console

from engine.supervision.progress import Progress
from engine.telemetry.status import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.supervision.parts import Part
    from engine.telemetry.status import Status
    from routes.model import Config

__all__ = ["LoggedProgress"]

_WARNED_OF = (State.DEGRADED, State.DOWN)
_log = structlog.get_logger(__name__)


class LoggedProgress(Progress):
    """Logs each change of a part's state; degraded and dead parts as warnings."""

    def __init__(self, config: Config, parts: Sequence[Part], url: str) -> None:
        super().__init__(config, parts, url, Console(quiet=True, force_terminal=False))

    def begin(self) -> None:
        """Logs which bridge starts, and its parts."""
        version, path = metadata.version("jms-bridge"), str(self._config.path)
        _log.info("bridge starts", bridge=self._config.bridge_id, version=version, file=path, parts=list(self._shown))

    def stopping(self) -> None:
        """Logs that the bridge was asked to stop."""
        _log.info("bridge stops")

    def _stands_by(self, why: str) -> None:
        _log.info("bridge stands by", why=why)

    def _line(self, status: Status) -> None:
        log = _log.warning if status.state in _WARNED_OF else _log.info
        log(f"part is {status.state}", component=status.component, state=str(status.state), detail=status.detail)

    def _next(self) -> None:
        _log.info("bridge is ready", url=self._url, seconds=round(time.monotonic() - self._began, 1))
