"""HTTP server for metrics, health and the status page, in a thread of the supervisor.

    /metrics   metrics of all processes, in Prometheus' text format or OpenMetrics as the client asks
    /metrics/earlier  the reading, some seconds old, that `jms-bridge status` computes rates from, as JSON
    /health    200 while the supervisor lives; JSON says whether this bridge leads, and whether any does
    /ready     200 when every component is ready and the dead-letter topic can be reached, else 503; JSON says which
               is not, and why, and how many dead letters there are, which alone is not a fault. A bridge that stands by
               is not ready: a load balancer that looks for a bridge to send messages to must not find it.
               `/ready?standby=ok` is for monitoring that asks only whether all is well: it is 200 also for a bridge
               that stands by, and 503 while no bridge is known to lead
    /peers     JSON about the parts of this bridge on its other hosts, if it has any (`http.peers`); `/metrics` and
               `/ready` are about the own parts only
    /          the status page, see `engine.page`, and requests that change the bridge, see `control`

All answers come from the status board; this module talks to no broker. `/health` is open to every client; `http_login`
decides who may see the rest. If the configuration has `http.metrics-address`, a second server there serves all but the
status page, without a login.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
import time
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING, Protocol, Self, cast

import structlog
import uvicorn
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from engine import tls
from engine.errors import SetupError
from engine.printable import json_text
from engine.telemetry.client import find
from engine.telemetry.http_login import HttpLogin
from engine.telemetry.http_section import HttpConfig
from engine.telemetry.report import EARLIER
from engine.telemetry.users import plain_note

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prometheus_client.registry import CollectorRegistry
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from engine.telemetry.peers import Peers
    from engine.telemetry.report import MetricSample
    from engine.telemetry.status import DeadLetterCounts, StatusBoard
    from engine.telemetry.users import LoginPage

__all__ = ["HttpServer", "Standing", "application", "earlier_reading", "metrics_only"]

_MOST_CONNECTIONS = 100
_MOST_HEAD_BYTES = 64 * 1024
"""Limit of a request's line and headers together."""
_SLICE_BYTES = 4096
_HANDSHAKE_SECONDS = 5.0
"""Limit for the TLS handshake, before which there is no connection to count."""
_REQUEST_SECONDS = 15.0
"""Limit from the beginning of a connection, or the last answer on it, until the next answer is complete; of an answer
in many pieces, until the client has taken some more of it."""
_TRY_SECONDS = 1.0
_ANSWER_SECONDS = 2.0
_log = structlog.get_logger(__name__)

_HEALTH = "/health"
_DEAD_LETTERS = "dead-letter topic"
"""Entry in `waiting_for` while the dead-letter topic cannot be reached."""
_A_LEADER = "a bridge that leads"
"""Entry in `waiting_for` while no bridge is known to lead."""


class Standing(Protocol):
    """A bridge's place in the election among bridges with its id."""

    @property
    def leads(self) -> bool:
        """True if this bridge leads."""

    @property
    def has_leader(self) -> bool:
        """True if this bridge or another one is known to lead."""

    @property
    def why_not(self) -> str:
        """Reason why this bridge does not lead, in one line; empty if it leads or is about to."""

    @property
    def stands_by(self) -> bool:
        """True if another bridge leads and this one would take over from it."""


def application(
    board: StatusBoard,
    registry: CollectorRegistry,
    standing: Standing | None = None,
    census: Callable[[], DeadLetterCounts | None] = lambda: None,
    configuration: Callable[[], dict[str, object]] = dict,
    pages: Sequence[BaseRoute] = (),
    peers: Peers | None = None,
) -> Starlette:
    """Builds the ASGI application that serves metrics, health, readiness and `pages`.

    Args:
        board: latest status of the components.
        registry: yields all that `/metrics` shows.
        standing: the bridge's place in its election, if it takes part in one.
        census: returns the latest count of dead letters; None if there is none.
        configuration: returns the JSON field about the configuration in force and its last reload; empty without one.
        pages: further routes, such as those of the status page.
        peers: the other hosts of the bridge; None if it has none, or if they are not shown.
    """

    def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    # A coroutine runs on the event loop itself, so it answers even while all threads of the pool are busy.
    async def health(_: Request) -> Response:
        body: dict[str, object] = {"status": "up"} | _lead(standing)
        if known := census():
            # `/health` needs no login, so it shows no names.
            body["dead_letters"] = {"reachable": known.reachable, "depth": known.depth}
        return JSONResponse(body)

    def ready(request: Request) -> Response:
        body = _readiness(board, standing, census())
        if configured := configuration():
            body["configuration"] = configured
        if peers:
            body["instance"] = peers.instance
        well = body["ready"] or (request.query_params.get("standby") == "ok" and standing and standing.stands_by)
        return JSONResponse(body, status_code=200 if well else 503)

    def others(_: Request) -> Response:
        configured = [asdict(each) for each in peers.reports()] if peers else []
        return Response(json_text(configured), media_type="application/json")

    routes = [Route("/metrics", metrics), Route(_HEALTH, health), Route("/ready", ready), *pages]
    return Starlette(routes=[*routes, Route("/peers", others)] if peers else routes)


def earlier_reading(earlier: Callable[[], MetricSample]) -> Route:
    """Makes the route of the reading of the metrics that `earlier` returns; its time is of the monotonic clock."""

    def reading(_: Request) -> Response:
        return Response(json_text(earlier().json(time.monotonic())), media_type="application/json")

    return Route(EARLIER, reading)


class HttpServer:
    """HTTP server in a thread of its own: `with HttpServer(…) as server:`."""

    def __init__(
        self,
        config: HttpConfig,
        app: Starlette,
        *,
        patient: bool = False,
        setting: str = "http.address",
        login_page: LoginPage = plain_note,
    ) -> None:
        """Binds the address at once.

        A `patient` server waits instead while the address belongs to another bridge that takes part in an election.
        `setting` is the configuration key of the address, for error messages. `login_page` makes the answers for users
        who are not logged in.

        Raises:
            SetupError: the address cannot be bound, or a TLS file is invalid.
        """
        self._config = config
        self._setting = setting
        self._scheme = "https" if config.certificate else "http"
        self._ends = Event()
        context = _tls(config)
        self._socket = None if patient and _is_of_a_rival(config) else _listen(config, setting)
        # The supervisor handles signals; uvicorn gets no log, because the bridge logs what matters itself.
        settings = uvicorn.Config(
            HttpLogin(app, config, frozenset((_HEALTH,)), login_page),
            http="h11",
            h11_max_incomplete_event_size=_MOST_HEAD_BYTES - _SLICE_BYTES,
            # Otherwise any user of this machine could claim any client address.
            proxy_headers=False,
            ws="none",
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=1,
            ssl_context_factory=None if context is None else lambda *_: context,
        )
        # Otherwise each malformed request writes a line into the log.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._server = _BoundedServer(settings)
        self._thread = Thread(target=self._run, name="http", daemon=True)

    @property
    def url(self) -> str:
        """The URL of the server, without a slash at the end."""
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
            _log.warning("another bridge uses this address; this one follows when it has ended", address=self.url)
        while self._socket is None:
            if self._ends.wait(_TRY_SECONDS):
                return
            with suppress(SetupError):
                self._socket = _listen(self._config, self._setting)
        self._server.run(sockets=[self._socket])


class _BoundedConnection(H11Protocol):
    """HTTP connection with the limits for which uvicorn has no setting.

    `timeout_keep_alive` counts only after an answer, so a client could take forever over its request. With
    `limit_concurrency`, clients that open connections and send nothing would keep out all others; here they displace
    each other: above the limit, the connection that has kept the server waiting longest is closed.
    """

    _timer: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        super().connection_made(transport)
        self._timer = self.loop.call_later(_REQUEST_SECONDS, self._expire)
        connections = cast("set[_BoundedConnection]", self.connections)
        if len(connections) > _MOST_CONNECTIONS:
            min(connections - {self}, key=lambda each: each._timer.when())._abort()

    def data_received(self, data: bytes) -> None:
        # h11 limits a head only while it is incomplete, so it gets no large piece at once.
        for start in range(0, len(data), _SLICE_BYTES):
            # h11 has refused the request in an earlier slice.
            if self.transport.is_closing():
                return
            super().data_received(data[start : start + _SLICE_BYTES])

    def on_response_complete(self) -> None:
        self._wait_anew()
        super().on_response_complete()

    def resume_writing(self) -> None:
        self._wait_anew()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def _wait_anew(self) -> None:
        self._timer.cancel()
        self._timer = self.loop.call_later(_REQUEST_SECONDS, self._expire)

    def _expire(self) -> None:
        # A search answers for as long as it takes, to a client that takes all there is.
        is_streaming = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if is_streaming and self.transport.get_write_buffer_size() == 0:
            self._wait_anew()
        else:
            self._abort()

    def _abort(self) -> None:
        # `connection_lost` comes a turn of the loop later: until then, further new connections would pick this one
        # again.
        self.connections.discard(self)
        # Aborted, not closed: the client may be one that does not read the answer it asked for.
        self.transport.abort()


class _BoundedServer(uvicorn.Server):
    """uvicorn's server with a limit on the TLS handshake, for which asyncio alone allows a minute."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        config = self.config
        self.servers = [
            await asyncio.get_running_loop().create_server(
                partial(_BoundedConnection, config, self.server_state, self.lifespan.state),
                sock=each,
                ssl=config.ssl,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS if config.ssl else None,
                backlog=config.backlog,
            )
            for each in sockets or ()
        ]
        self.started = True


def _readiness(board: StatusBoard, standing: Standing | None, census: DeadLetterCounts | None) -> dict[str, object]:
    """The JSON fields about the own parts, the dead letters and the election."""
    statuses = board.all()
    components = {status.component: {"state": status.state, "detail": status.detail} for status in statuses}
    waiting = [status.component for status in statuses if not status.state.is_well]
    if census and not census.reachable:
        waiting.append(_DEAD_LETTERS)
    if standing and not standing.has_leader:
        waiting.append(_A_LEADER)
    body: dict[str, object] = {"ready": not waiting, "waiting_for": waiting, "components": components}
    if census:
        body["dead_letters"] = _dead_letters_json(census)
    body |= _lead(standing)
    if standing and not standing.leads:
        body["standby"] = standing.why_not
    return body


def _lead(standing: Standing | None) -> dict[str, object]:
    """The JSON fields about the election; empty for a bridge that takes part in none."""
    return {"leader": standing.leads, "has_leader": standing.has_leader} if standing else {}


def metrics_only(config: HttpConfig) -> HttpConfig | None:
    """The configuration of the second server, for metrics and health without login or TLS; None if there is none."""
    return None if config.metrics_host is None else HttpConfig(config.metrics_host, config.metrics_port)


def _dead_letters_json(census: DeadLetterCounts) -> dict[str, object]:
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
    """True if a bridge that takes part in an election answers at the address."""
    answer = find(config, _HEALTH, _ANSWER_SECONDS)
    return answer is not None and "leader" in answer


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
