"""Serves metrics and health over HTTP, from a thread of the supervisor.

    /metrics   figures of all processes, Prometheus' text format or OpenMetrics as the client asks
    /health    200 while the supervisor lives; JSON says whether this bridge leads, and whether any does
    /ready     200 when every component is ready and the dead-letter topic can be reached, else 503; JSON says which
               is not, and why, and how many dead letters there are, which alone is no fault. A bridge that stands by
               is not ready: what looks for a place to send messages to must not find it. `/ready?standby=ok` is for
               those who only want to know whether all is well: it is 503 while no bridge is known to lead
    /          the status page, see `engine.page`

What is served here is read from the status board; nothing here talks to a broker. `/health` is open to everybody; who
may see the rest is the business of `http_login`, how long a client may take that of `http_protocol`. Where the
configuration has `http.metrics-address`, a second server shows all but the status page there, without a login.
"""

from __future__ import annotations

import errno
import logging
import socket
import ssl
import time
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Protocol, Self

import structlog
import uvicorn
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from engine import tls
from engine.errors import SetupError
from engine.telemetry.client import find
from engine.telemetry.http_login import HttpLogin
from engine.telemetry.http_protocol import MOST_HEAD_BYTES, SLICE_BYTES, BoundedProtocol, BoundedServer
from engine.telemetry.status import State
from routes.model import HttpConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prometheus_client.registry import CollectorRegistry
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from engine.dead_letters.backlog import Census
    from engine.telemetry.status import StatusBoard

__all__ = ["HttpServer", "Standing", "application", "metrics_only"]

_TRY_SECONDS = 1.0
_ANSWER_SECONDS = 2.0
_log = structlog.get_logger(__name__)

_HEALTH = "/health"
_DEAD_LETTERS = "dead-letter topic"
"""What a bridge waits for whose dead letters have no place."""
_A_LEADER = "a bridge that leads"
"""What a bridge waits for that does not lead, while no other does."""


class Standing(Protocol):
    """How a bridge stands in an election."""

    @property
    def leads(self) -> bool:
        """Whether it leads."""

    @property
    def has_leader(self) -> bool:
        """Whether this bridge or another one is known to lead."""

    @property
    def why_not(self) -> str:
        """Why it does not."""

    @property
    def stands_by(self) -> bool:
        """Whether it would take over."""


def application(
    board: StatusBoard,
    registry: CollectorRegistry,
    standing: Standing | None = None,
    census: Callable[[], Census | None] = lambda: None,
    configuration: Callable[[], dict[str, object]] = dict,
    pages: Sequence[BaseRoute] = (),
) -> Starlette:
    """What is served, as an ASGI application.

    Args:
        board: what the components say.
        registry: yields all that `/metrics` shows.
        standing: how the bridge stands in its election, if it takes part in one.
        census: gives what is known of the dead letters.
        configuration: says which one is in force, and how its last reload went.
        pages: what else there is, for people.
    """

    def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    # On the loop itself, so that it answers while all threads are at work.
    async def health(_: Request) -> Response:
        body: dict[str, object] = {"status": "up"} | _lead(standing)
        if known := census():
            # Open to everybody: no names.
            body["dead_letters"] = {"reachable": known.reachable, "depth": known.depth}
        return JSONResponse(body)

    def ready(request: Request) -> Response:
        components = {status.component: {"state": status.state, "detail": status.detail} for status in board.all()}
        waiting = [name for name, told in components.items() if told["state"] != State.READY]
        known = census()
        if known and not known.reachable:
            waiting.append(_DEAD_LETTERS)
        if standing and not standing.has_leader:
            waiting.append(_A_LEADER)
        body: dict[str, object] = {"ready": not waiting, "waiting_for": waiting, "components": components}
        if known:
            body["dead_letters"] = _told(known)
        if told := configuration():
            body["configuration"] = told
        body |= _lead(standing)
        if standing and not standing.leads:
            body["standby"] = standing.why_not
        well = not waiting or (request.query_params.get("standby") == "ok" and standing and standing.stands_by)
        return JSONResponse(body, status_code=200 if well else 503)

    return Starlette(
        routes=[
            Route("/metrics", metrics),
            Route(_HEALTH, health),
            Route("/ready", ready),
            *pages,
        ]
    )


class HttpServer:
    """The server in a thread: `with HttpServer(…) as server:`."""

    def __init__(
        self, config: HttpConfig, app: Starlette, *, patient: bool = False, setting: str = "http.address"
    ) -> None:
        """Takes the address at once: SetupError when that is not possible, or a TLS file is no good.

        One that is `patient` waits for it while a bridge that stands in an election has it. `setting` is the key that
        the address comes from.
        """
        self._config = config
        self._setting = setting
        self._scheme = "https" if config.certificate else "http"
        self._ends = Event()
        context = _tls(config)
        self._socket = None if patient and _is_of_a_rival(config) else _listen(config, setting)
        # Signals belong to the supervisor; what has to be said is in the log already.
        settings = uvicorn.Config(
            HttpLogin(app, config, frozenset((_HEALTH,))),
            http=BoundedProtocol,
            h11_max_incomplete_event_size=MOST_HEAD_BYTES - SLICE_BYTES,
            # Else any user of this machine could claim to come from any address.
            proxy_headers=False,
            ws="none",
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=1,
            ssl_context_factory=None if context is None else lambda *_: context,
        )
        # Else whoever sends what is no request writes a line into our log with each.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._server = BoundedServer(settings)
        self._thread = Thread(target=self._run, name="http", daemon=True)

    @property
    def url(self) -> str:
        """Where it answers, without a slash at the end."""
        host, port = self._socket.getsockname()[:2] if self._socket else (self._config.host, self._config.port)
        return f"{self._scheme}://[{host}]:{port}" if ":" in host else f"{self._scheme}://{host}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._server.should_exit = True
        self._thread.join(timeout=5)
        if self._socket:
            self._socket.close()

    def _run(self) -> None:
        if self._socket is None:
            _log.warning("another bridge serves its figures there; this one does when it has ended", address=self.url)
        while self._socket is None:
            if self._ends.wait(_TRY_SECONDS):
                return
            with suppress(SetupError):
                self._socket = _listen(self._config, self._setting)
        self._server.run(sockets=[self._socket])


def _lead(standing: Standing | None) -> dict[str, object]:
    """The fields about the election; none for a bridge that takes part in none."""
    return {"leader": standing.leads, "has_leader": standing.has_leader} if standing else {}


def metrics_only(config: HttpConfig) -> HttpConfig | None:
    """Where metrics and health are served without a login and TLS, as a configuration of a server of its own."""
    return None if config.metrics_host is None else HttpConfig(config.metrics_host, config.metrics_port)


def _told(census: Census) -> dict[str, object]:
    is_counted = census.open is not None
    return {
        "topic": census.topic,
        "reachable": census.reachable,
        "depth": census.depth,
        "oldest_seconds": round(census.oldest_age(time.time()), 3) if is_counted else None,
        "reasons": {reason: count for reason, count in (census.open or {}).items() if count},
        "quarantined": census.quarantined,
        "detail": census.trouble,
    }


def _is_of_a_rival(config: HttpConfig) -> bool:
    """Whether a bridge that stands in an election has the address."""
    told = find(config, _HEALTH, _ANSWER_SECONDS)
    return told is not None and "leader" in told


def _tls(config: HttpConfig) -> ssl.SSLContext | None:
    if config.certificate is None:
        return None
    return tls.context("http.tls", ssl.Purpose.CLIENT_AUTH, certificate=config.certificate, key=config.key)


def _listen(config: HttpConfig, setting: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        return socket.create_server((config.host, config.port), family=family)
    except OSError as error:
        reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror or error}"
        message = f"{setting}={config.host}:{config.port} {reason}; set {setting} to another port"
        raise SetupError(message) from error
