"""`jms-bridge reload | restart`: a changed configuration for a running bridge, and a new start of one of its parts."""

from __future__ import annotations

import time
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, command, load, read_seconds
from engine.errors import HardFailureError, UnreachableError, UsageError
from engine.printable import json_text, printable
from engine.telemetry.http_section import HttpConfig
from routes.errors import BridgeError

__all__ = ["RefusedReloadError", "reload", "restart"]

_ASK_SECONDS = 5.0
_POLL_SECONDS = 0.3
_ACCEPTED, _UNAUTHORISED, _TOO_MANY = 202, 401, 429

Timeout = Annotated[
    float,
    typer.Option(
        "--timeout", parser=read_seconds, metavar="SECONDS", help="Time to wait until changed parts are ready."
    ),
]


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
    number = int(_ordered(settings.bridge_id, http, "/reload").get("request", 0))
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
    part: Annotated[
        str, typer.Argument(metavar="PART", help="A part: router, source:NAME, topology:NAME or sink:NAME.")
    ],
    config: ConfigFile = DEFAULT_CONFIG,
    json_output: Json = False,
) -> None:
    """Have the running bridge end one of its parts in order and start it again; all others go on.

    The part starts with the configuration in force, and a topology with its source files in force. Later changes on
    disk need `jms-bridge reload`.
    """
    settings = load(config, logs=False)
    path = f"/restart?{urlencode({'part': part})}"
    parts = _ordered(settings.bridge_id, settings.section(HttpConfig), path).get("parts", [])
    typer.echo(json_text({"parts": parts}) if json_output else printable(f"restarting: {', '.join(parts)}"))


def _ordered(bridge_id: str, http: HttpConfig, path: str) -> dict[str, Any]:
    """Sends a request to the bridge; returns its answer.

    Raises:
        UsageError: the bridge refuses the request, or it is of a version without such requests.
        HardFailureError: the bridge does not take the login of the configuration, or another bridge answers.
        UnreachableError: no bridge answers.
    """
    from engine.telemetry.client import base_url, find, order

    where = base_url(http)
    told = (find(http, "/ready", _ASK_SECONDS, login=True) or {}).get("configuration")
    bridge = told.get("bridge") if isinstance(told, dict) else None
    if bridge is not None and bridge != bridge_id:
        msg = f"bridge '{bridge}' answers at {where}, not '{bridge_id}': correct http.address or bridge.id"
        raise HardFailureError(msg)
    status, answer = order(http, path, _ASK_SECONDS)
    if status == _ACCEPTED:
        return answer
    if status in (_UNAUTHORISED, _TOO_MANY):
        msg = f"{where} does not take the login of this file (status {status}); http.* changes with a restart alone"
        raise HardFailureError(msg)
    raise UsageError(answer.get("error") or f"the server at {where} takes no such request (HTTP status {status})")
