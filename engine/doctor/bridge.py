"""Checks of the status page's address, free or that of a running bridge, and of the bridge's other hosts."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import tls
from engine.doctor.checks import Finding, failed, of_error, ok, warning
from engine.doctor.machine import check_port
from engine.errors import SetupError, UnreachableError
from engine.printable import listed
from engine.telemetry.client import ask, find
from engine.topologies.runtime.code import read_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from routes.keys.addresses import Peer
    from routes.model import Config, TopologyConfig

__all__ = ["Answer", "ask_bridge", "check_http", "check_peer"]

_SETTING = "http.address"
_READY, _NOT_READY = 200, 503


@dataclass(frozen=True, slots=True)
class Answer:
    """The status that a bridge reports at the address of a configuration."""

    bridge: str
    """Id of the bridge; empty if it reports none."""
    hash: str
    """Hash of the properties file that is in force there."""
    waiting_for: tuple[str, ...]
    standby: str
    """Reason for which the bridge does not lead; empty if it leads."""
    has_leader: bool = True
    """True if that bridge or another one is known to lead."""
    topologies: Mapping[str, str] = field(default_factory=dict)
    """Hash of the source files that are in force there, by the topology's name."""


def ask_bridge(config: Config, timeout_seconds: float) -> Answer | None:
    """Returns the answer of the bridge at the configured address; None if no bridge answers."""
    health = find(config.http, "/health", timeout_seconds)
    if health is None or health.get("status") != "up":
        return None
    return _answer(find(config.http, "/ready", timeout_seconds, login=True) or {})


def check_http(config: Config, digest: str, answer: Answer | None) -> Iterator[Finding]:
    """Checks where the page and the figures are served; `digest` is the hash of the properties file as it is now."""
    http = config.http
    if http.certificate:
        try:
            tls.context("http.tls", ssl.Purpose.CLIENT_AUTH, certificate=http.certificate, key=http.key)
        except SetupError as error:
            yield of_error("http.tls", error, "correct http.tls.certificate and http.tls.key")
    if answer is None:
        yield check_port(_SETTING, http.host, http.port, running=False)
        if http.metrics_host is not None:
            yield check_port("http.metrics-address", http.metrics_host, http.metrics_port, running=False)
    elif answer.bridge != config.bridge_id:
        yield _another(config, answer)
    else:
        yield _own(f"bridge '{config.bridge_id}' runs at {http.host}:{http.port}", digest, answer)
        yield from _code(config.topologies, answer)


def check_peer(config: Config, peer: Peer, timeout_seconds: float) -> Iterator[Finding]:
    """Checks that another host of the bridge answers and takes the login; with one that is down the bridge works."""
    name = f"peer {peer}"
    try:
        code, _ = ask(config.http, "/ready", timeout_seconds, peer=peer)
    except UnreachableError as error:
        yield warning(name, str(error), "start the bridge there, or correct http.peers, its http.address or a firewall")
        return
    if code in (_READY, _NOT_READY):
        yield ok(name, f"a bridge answers at {peer}")
    else:
        remedy = "all hosts of a bridge need the same http.token, or http.username and http.password"
        yield warning(name, f"{peer} answers with HTTP status {code} to the login of this configuration", remedy)


def _another(config: Config, answer: Answer) -> Finding:
    who = f"bridge '{answer.bridge}'" if answer.bridge else "a bridge that does not tell its id"
    what = f"{who} runs at {config.http.host}:{config.http.port}"
    remedy = f"set {_SETTING} to another port"
    if config.embedded_kafka:
        return failed(_SETTING, what, remedy)
    return warning(_SETTING, f"{what}; figures of this one are served only when it has ended", remedy)


def _own(what: str, digest: str, answer: Answer) -> Finding:
    if answer.hash != digest:
        remedy = "`jms-bridge reload`, or restart it: /ready says what was wrong with the file"
        return warning("bridge", f"{what}, but not on the file as it is now", remedy)
    if answer.standby and answer.has_leader:
        return ok("bridge", f"{what} and stands by: {answer.standby}")
    if answer.waiting_for:
        remedy = "see below, /ready and its log for why; after a start or a crash it takes a moment"
        return warning("bridge", f"{what} and waits for {', '.join(answer.waiting_for)}", remedy)
    return ok("bridge", f"{what} and is ready")


def _code(topologies: Iterable[TopologyConfig], answer: Answer) -> Iterator[Finding]:
    """Warnings about topologies whose source files in the working directory are not those in force."""
    for each in topologies:
        code, in_force = read_code(each.build, Path.cwd()), answer.topologies.get(each.name)
        if code.modules and in_force is not None and in_force != code.hash:
            files = listed([module.file for module in code.modules if module.file])
            what = f"its source files on disk ({files}) are not those in force"
            yield warning(f"topology {each.name}", what, "`jms-bridge reload` takes them, or says why it does not")


def _answer(ready: dict[str, Any]) -> Answer:
    """Reads the content of `/ready`; values that a bridge of another version does not report are empty."""
    found = ready.get("configuration")
    configuration = found if isinstance(found, dict) else {}
    waiting, topologies = ready.get("waiting_for"), configuration.get("topologies")
    return Answer(
        str(configuration.get("bridge", "")),
        str(configuration.get("hash", "")),
        tuple(map(str, waiting)) if isinstance(waiting, list) else (),
        str(ready.get("standby", "")),
        bool(ready.get("has_leader", True)),
        topologies if isinstance(topologies, dict) else {},
    )
