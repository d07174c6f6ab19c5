"""Serves metrics and health over HTTP, from a thread of the supervisor.

    /metrics   figures of all processes, Prometheus' text format or OpenMetrics as the client asks
    /health    200 while the supervisor lives
    /ready     200 when every component is ready, else 503; JSON says which is not, and why
    /          links to the above

What is served is read from the status board; nothing here talks to a broker.
"""

from __future__ import annotations

import errno
import socket
from threading import Thread
from typing import TYPE_CHECKING, Self

import uvicorn
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from engine.errors import SetupError
from engine.telemetry.status import State

if TYPE_CHECKING:
    from prometheus_client.registry import CollectorRegistry
    from starlette.requests import Request

    from engine.telemetry.status import StatusBoard
    from routes.model import HttpConfig

__all__ = ["HttpServer", "application"]

_INDEX = """\
<!doctype html>
<html lang="en"><meta charset="utf-8"><title>jms-bridge</title>
<style>body { font: 1rem/1.6 system-ui, sans-serif; margin: 3rem auto; max-width: 40rem; padding: 0 1rem }</style>
<h1>jms-bridge</h1>
<ul>
<li><a href="/metrics">/metrics</a> figures for Prometheus</li>
<li><a href="/ready">/ready</a> whether messages can flow, and what keeps them from it</li>
<li><a href="/health">/health</a> whether the bridge is alive</li>
</ul>
</html>
"""


def application(board: StatusBoard, registry: CollectorRegistry) -> Starlette:
    """The pages as an ASGI application; `registry` yields all that `/metrics` shows."""

    def index(_: Request) -> Response:
        return HTMLResponse(_INDEX)

    def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    def health(_: Request) -> Response:
        return JSONResponse({"status": "up"})

    def ready(_: Request) -> Response:
        components = {status.component: {"state": status.state, "detail": status.detail} for status in board.all()}
        waiting = [name for name, told in components.items() if told["state"] != State.READY]
        body = {"ready": not waiting, "waiting_for": waiting, "components": components}
        return JSONResponse(body, status_code=503 if waiting else 200)

    return Starlette(
        routes=[
            Route("/", index),
            Route("/metrics", metrics),
            Route("/health", health),
            Route("/ready", ready),
        ]
    )


class HttpServer:
    """The server in a thread: `with HttpServer(…) as server:`."""

    def __init__(self, config: HttpConfig, app: Starlette) -> None:
        """Takes the address at once: SetupError when that is not possible."""
        self._socket = _listen(config)
        # Signals belong to the supervisor; what has to be said is in the log already.
        settings = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(settings)
        self._thread = Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, name="http", daemon=True)

    @property
    def url(self) -> str:
        """Where it answers, without a slash at the end."""
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=5)
        self._socket.close()


def _listen(config: HttpConfig) -> socket.socket:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        return socket.create_server((config.host, config.port), family=family)
    except OSError as error:
        reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror or error}"
        message = f"http.address={config.host}:{config.port} {reason}; set http.address to another port"
        raise SetupError(message) from error
