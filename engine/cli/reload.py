"""`jms-bridge reload | restart | pause | resume`: changes of a running bridge, and of one of its parts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

import typer

from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, command, load, read_seconds
from engine.errors import HardFailureError, UnreachableError, UsageError
from engine.printable import json_text, printable
from engine.telemetry.http_section import HttpConfig
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["RefusedReloadError", "pause", "reload", "restart", "resume"]

_ASK_SECONDS = 5.0
_POLL_SECONDS = 0.3
_ACCEPTED, _UNAUTHORISED, _TOO_MANY = 202, 401, 429

Timeout = Annotated[
    float,
    typer.Option(
        "--timeout", parser=read_seconds, metavar="SECONDS", help="Time to wait until changed parts are ready."
    ),
]


_PARTS = "router, source:NAME, topology:NAME or sink:NAME"
_Part = Annotated[str, typer.Argument(metavar="PART", help=f"A part: {_PARTS}.")]
_Pausable = Annotated[str, typer.Argument(metavar="PART", help=f"A part, {_PARTS}, or a route, route:NAME.")]
_ROUTE = "route:"


class RefusedReloadError(BridgeError):
    """A changed configuration that a running bridge has refused or revoked."""

    exit_code = 2


@command(
    "jms-bridge reload",
    "jms-bridge reload -c /etc/jms-bridge/jms-bridge.properties",
    "jms-bridge validate && jms-bridge reload --timeout 2m",
    "jms-bridge reload --json",
)
def reload(config: ConfigFile = DEFAULT_CONFIG, timeout: Timeout = 120.0, json_output: Json = False) -> None:
    """Have the running bridge read its properties file, and the source files of its topologies, again.

    The bridge is the one that answers at `http.address` of the properties file, with the login given there. It applies
    or refuses all changes as a whole, as after SIGHUP. The command waits until the changed parts are ready.

    The exit code is 0 if the file is in force, 1 if changed parts are not ready in time, 2 if the bridge has refused or
    revoked the change, whose reason is printed, 6 if no bridge answers.
    """
    settings = load(config, logs=False)
    http = settings.section(HttpConfig)
    number = int(_ordered(settings.bridge_id, http, "/api/reload").get("request", 0))
    outcome = _outcome(http, number, timeout)
    _tell(outcome, json_output)


def _outcome(http: HttpConfig, number: int, seconds: float) -> dict[str, Any]:
    """The report of the bridge on its configuration, as soon as the request is answered and its parts are ready.

    Raises:
        UnreachableError: the bridge has not answered the request in time.
    """
    from engine.telemetry.client import base_url, find

    deadline = time.monotonic() + seconds
    answered: dict[str, Any] | None = None
    while time.monotonic() < deadline:
        report = (find(http, "/ready", _ASK_SECONDS, login=True) or {}).get("configuration")
        if isinstance(report, dict) and int(report.get("reload", {}).get("request", 0)) >= number:
            answered = report
            if report.get("proven") or not report["reload"].get("success"):
                return report
        time.sleep(_POLL_SECONDS)
    if answered is None:
        msg = f"the bridge at {base_url(http)} has not read its configuration within {seconds:g} s; see its log"
        raise UnreachableError(msg)
    return answered


def _tell(report: dict[str, Any], json_output: bool) -> None:
    """Prints the report; raises RefusedReloadError, or ends with an exit code, if the file is not in force."""
    told = report["reload"]
    if json_output:
        typer.echo(json_text(report))
    if not told.get("success"):
        files = ", ".join(told.get("not_in_force", ()))
        left_out = f"; on disk and not in force: {files}" if files else ""
        why = told.get("why", "see the log")
        raise RefusedReloadError(f"the previous configuration stays in force: {why}{left_out}")
    changed = ", ".join(told.get("changed", ())) or "nothing"
    if not json_output:
        typer.echo(printable(f"in force: {report['hash']}; changed: {changed}"))
    if not report.get("proven"):
        msg = "changed parts are not ready yet, and the change may still be revoked: see `jms-bridge status`"
        raise BridgeError(msg)


@command(
    "jms-bridge restart topology:order-totals",
    "jms-bridge restart source:orders -c /etc/jms-bridge/jms-bridge.properties",
    "jms-bridge restart router",
)
def restart(
    part: _Part,
    config: ConfigFile = DEFAULT_CONFIG,
    json_output: Json = False,
) -> None:
    """Have the running bridge end one of its parts in order and start it again; all others go on.

    The part starts with the configuration in force, and a topology with its source files in force. Later changes on
    disk need `jms-bridge reload`.
    """
    settings = load(config, logs=False)
    parts = _ordered(settings.bridge_id, settings.section(HttpConfig), "/api/restart", part).get("parts", [])
    typer.echo(json_text({"parts": parts}) if json_output else printable(f"restarting: {', '.join(parts)}"))


@command(
    "jms-bridge pause source:orders",
    "jms-bridge pause sink:nats --timeout 2m",
    "jms-bridge pause route:orders",
    "jms-bridge pause router --json",
)
def pause(
    part: _Pausable, config: ConfigFile = DEFAULT_CONFIG, timeout: Timeout = 60.0, json_output: Json = False
) -> None:
    """Have the running bridge end a part in order, or hold the messages of a route, until `jms-bridge resume`.

    Messages wait: those for a source in its broker, those for the router in the journal, those for a sink in its topic.
    The part stays paused when the bridge is started again. A paused part does not keep the bridge from being ready. A
    standby, and other hosts of the bridge, have pauses of their own.

    A paused route still takes its messages. They are held in the dead-letter topic, and all other routes go on.

    The exit code is 0 if the part has ended, 1 if it has not in time, 6 if no bridge answers.
    """
    _change("pause", part, config, timeout, json_output)


@command("jms-bridge resume source:orders", "jms-bridge resume router --timeout 2m", "jms-bridge resume route:orders")
def resume(
    part: _Pausable, config: ConfigFile = DEFAULT_CONFIG, timeout: Timeout = 60.0, json_output: Json = False
) -> None:
    """Have the running bridge start a paused part again, or publish by a paused route again.

    The bridge replays the messages that the route has held, each once. New messages may be published before these.

    The exit code is 0 if the part is ready, 1 if it is not in time, 6 if no bridge answers.
    """
    _change("resume", part, config, timeout, json_output)


def _change(change: str, part: str, config: Path, timeout: float, json_output: bool) -> None:
    """Asks for a pause or its end, and waits until the parts are paused or ready; BridgeError if that takes longer."""
    settings = load(config, logs=False)
    http = settings.section(HttpConfig)
    parts = _ordered(settings.bridge_id, http, f"/api/{change}", part).get("parts", [])
    state = "paused" if change == "pause" else "ready"
    if late := _waited_for(http, parts, state, timeout):
        msg = f"{', '.join(late)} {'is' if len(late) == 1 else 'are'} not {state} yet: see `jms-bridge status`"
        raise BridgeError(msg)
    typer.echo(
        json_text({"parts": parts, "state": state}) if json_output else printable(f"{state}: {', '.join(parts)}")
    )


def _waited_for(http: HttpConfig, parts: Sequence[str], state: str, seconds: float) -> list[str]:
    """The parts that are not in a state after so many seconds."""
    from engine.telemetry.client import find

    deadline = time.monotonic() + seconds
    while True:
        report = find(http, "/ready", _ASK_SECONDS, login=True) or {}
        components, paused = report.get("components", {}), report.get("configuration", {}).get("paused", {})
        states = {part: "paused" if part.removeprefix(_ROUTE) in paused else "ready" for part in parts}
        states |= {part: components.get(part, {}).get("state") for part in parts if not part.startswith(_ROUTE)}
        late = [part for part in parts if states[part] != state]
        if not late or time.monotonic() > deadline:
            return late
        time.sleep(_POLL_SECONDS)


def _ordered(bridge_id: str, http: HttpConfig, path: str, part: str | None = None) -> dict[str, Any]:
    """Sends a request to the bridge, about a part or the whole, in the name of this user; returns its answer.

    Raises:
        UsageError: the bridge refuses the request, or it is of a version without such requests.
        HardFailureError: the bridge does not take the login of the configuration, or another bridge answers.
        UnreachableError: no bridge answers.
    """
    from engine.dead_letters.audit import Actor
    from engine.telemetry.client import base_url, find, order

    where = base_url(http)
    told = (find(http, "/ready", _ASK_SECONDS, login=True) or {}).get("configuration")
    bridge = told.get("bridge") if isinstance(told, dict) else None
    if bridge is not None and bridge != bridge_id:
        msg = f"bridge '{bridge}' answers at {where}, not '{bridge_id}': correct http.address or bridge.id"
        raise HardFailureError(msg)
    actor = Actor.here()
    query = urlencode(({"part": part} if part else {}) | {"by": f"{actor.user}@{actor.host}"})
    status, answer = order(http, f"{path}?{query}", _ASK_SECONDS)
    if status == _ACCEPTED:
        return answer
    if status in (_UNAUTHORISED, _TOO_MANY):
        msg = f"{where} does not take the login of this file (status {status}); http.* changes with a restart alone"
        raise HardFailureError(msg)
    raise UsageError(answer.get("error") or f"the server at {where} takes no such request (HTTP status {status})")
