"""The checks that a configuration asks for, put together and run."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from engine.doctor.bridge import ask_bridge, check_http, check_peer
from engine.doctor.brokers import broker_check
from engine.doctor.certificates import certificates_of, check_certificates
from engine.doctor.checks import Check, Finding, failed, ok, run, warning
from engine.doctor.file_systems import check_file_systems, uris_of
from engine.doctor.folders import (
    check_bridge_secret,
    check_files,
    check_folders,
    check_hard_links,
    check_secrets,
    folders_of,
)
from engine.doctor.identity import IDENTITY_REMEDY, check_identity
from engine.doctor.kafka import REMEDY, check_kafka
from engine.doctor.machine import check_clock, check_disks, check_embedded_ports, check_limits
from engine.doctor.registry import REGISTRY_REMEDY, check_registry
from engine.doctor.spark import check_spark
from engine.doctor.versions import check_jars, check_java, check_nats_server, check_packages, jars_of
from engine.errors import UnreachableError
from engine.jars import jars
from engine.kafka.clients import KafkaClients
from engine.openid.client import OpenIdClient
from engine.schemas.section import SchemaConfig
from engine.spark.section import SparkConfig
from engine.spark.settings import is_cluster
from engine.telemetry.http_section import HttpConfig
from engine.telemetry.logging import Redactor, secrets_of
from engine.topologies.section import TopologiesConfig
from routes.config.snapshot import Snapshot
from routes.errors import ConfigurationError, Level

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from engine.doctor.bridge import Answer
    from engine.doctor.checks import Waiting
    from routes.errors import Fault
    from routes.model import Config

__all__ = ["examine", "examine_connections"]

_CONFIGURATION = "configuration"
_HTTP_SECONDS = 1.0
_PEER_SECONDS = 2.0
_LAST_WORDS_SECONDS = 0.5
"""Time between the checks' own limit and the deadline, in which a check that waited for a broker can say so."""


def examine(path: Path, timeout_seconds: float, waiting: Waiting = lambda _: None) -> list[Finding]:
    """Returns the findings on everything that a bridge with this properties file needs, free of secrets.

    Takes `timeout_seconds` and some tenths at most; with topologies, some seconds more in which Spark plans them.
    `waiting` is called with the names of the checks that are not done.
    """
    deadline = time.monotonic() + timeout_seconds
    snapshot, config, findings = _read(path)
    checks = list(_programs(config))
    clean = Redactor(secrets_of(config) if config else ())
    if snapshot is not None and config is not None:
        waiting(["bridge"])
        answer = ask_bridge(config.section(HttpConfig), min(_HTTP_SECONDS, timeout_seconds / 2))
        left = max(deadline - time.monotonic(), 0.0)
        seconds = round(max(left - _LAST_WORDS_SECONDS, left / 2), 1)
        running = answer is not None and answer.bridge == config.bridge_id
        checks += _machine(config, snapshot, answer, running=running)
        checks += _peers(config.section(HttpConfig), min(_PEER_SECONDS, seconds))
        checks += _brokers(config, seconds, running=running)
    looked = run(checks, deadline + _LAST_WORDS_SECONDS, waiting)
    if snapshot is not None and config is not None and config.section(TopologiesConfig):
        waiting(["definitions of topologies"])
        looked += _definitions(config.section(TopologiesConfig), snapshot)
    return [_cleaned(finding, clean) for finding in (*findings, *looked)]


def examine_connections(config: Config, timeout_seconds: float) -> list[Finding]:
    """Returns the findings on Kafka, its topics, the topologies, and the system of each source and sink.

    They are free of secrets. Takes `timeout_seconds` and some tenths at most.
    """
    deadline = time.monotonic() + timeout_seconds
    answer = ask_bridge(config.section(HttpConfig), min(_HTTP_SECONDS, timeout_seconds / 2))
    seconds = round(max(deadline - time.monotonic() - _LAST_WORDS_SECONDS, timeout_seconds / 4), 1)
    running = answer is not None and answer.bridge == config.bridge_id
    clean = Redactor(secrets_of(config))
    looked = run(_brokers(config, seconds, running=running), deadline + _LAST_WORDS_SECONDS, lambda _: None)
    return [_cleaned(finding, clean) for finding in looked]


def _read(path: Path) -> tuple[Snapshot | None, Config | None, list[Finding]]:
    """Returns the file, the configuration in it, each if it can be read, and the findings on them."""
    try:
        snapshot = Snapshot.take(path)
    except ConfigurationError as error:
        return None, None, [*map(_fault, error.faults), _left_out()]
    linted = snapshot.lint()
    findings = [_fault(fault) for fault in linted.faults]
    if linted.config is None:
        return snapshot, None, [*findings, _left_out()]
    return snapshot, linted.config, findings or [ok(_CONFIGURATION, f"{path} has no faults")]


def _fault(fault: Fault) -> Finding:
    place = ":".join(str(part) for part in (fault.file, fault.line) if part)
    what = f"{place}: {fault.message}" if place else fault.message
    remedy = fault.hint or "`jms-bridge validate` shows the place"
    if fault.level is Level.WARNING:
        return warning(_CONFIGURATION, what, remedy)
    return failed(_CONFIGURATION, what, remedy, ConfigurationError)


def _left_out() -> Finding:
    what = "ports, folders and brokers are not checked, since the configuration that names them has faults"
    return warning("the rest", what, "correct the configuration, then run this command again")


def _programs(config: Config | None) -> Iterator[Check]:
    yield Check("versions", check_packages)
    yield Check("java", check_java)
    yield Check("open files", check_limits)
    yield Check("jars", partial(check_jars, jars(), jars_of(config)))
    if config is not None and config.embedded_nats:
        yield Check("nats-server", check_nats_server)


def _machine(config: Config, snapshot: Snapshot, answer: Answer | None, *, running: bool) -> Iterator[Check]:
    yield Check("http.address", partial(check_http, config, snapshot.hash, answer))
    yield Check("ports", partial(check_embedded_ports, config, running=running))
    folders = folders_of(config)
    yield Check("folders", partial(check_folders, folders))
    yield Check("files", partial(check_files, config, snapshot))
    if any(broker.type.in_folders for broker in config.brokers):
        yield Check("hard links", lambda: [check_hard_links()])
    yield Check(
        "secrets",
        lambda: [
            *check_secrets(snapshot),
            *check_bridge_secret(config.secret, config.section(HttpConfig), config.router.checkpoint),
        ],
    )
    yield Check("certificates", partial(check_certificates, certificates_of(config)))
    roots = {f"dropboxes of {each.name}": each.folder for each in config.brokers if each.folder is not None}
    logs = {"logs": config.embedded.data / "log"}
    yield Check("disk", partial(check_disks, {**folders, **logs, **roots}))
    yield Check("clock", check_clock)


def _peers(http: HttpConfig, seconds: float) -> Iterator[Check]:
    for peer in http.peers:
        yield Check(f"peer {peer}", partial(check_peer, http, peer, seconds))


def _brokers(config: Config, seconds: float, *, running: bool) -> Sequence[Check]:
    brokers = [broker_check(config, broker, seconds, running=running) for broker in config.brokers]
    if config.section(SchemaConfig).urls:
        look = partial(check_registry, config.section(SchemaConfig), seconds)
        brokers.append(Check("schema registry", look, REGISTRY_REMEDY, UnreachableError))
    if client := OpenIdClient.of(config.section(HttpConfig).oidc):
        brokers.append(Check("login", partial(check_identity, client), IDENTITY_REMEDY))
    master = config.section(SparkConfig).get("spark.master")
    if master is not None and is_cluster(master):
        brokers.append(Check("spark master", partial(check_spark, config, master, seconds / 2)))
    if (topologies := config.section(TopologiesConfig)) and (running or not config.embedded_kafka):
        look = partial(_topologies, topologies, KafkaClients(config.kafka_access), config.embedded.data, seconds)
        brokers.append(Check("topologies", look, REMEDY, UnreachableError))
    if uris := uris_of(config):
        look = partial(check_file_systems, uris, config.section(SparkConfig), seconds)
        brokers.append(Check("file systems", look))
    if config.embedded_kafka and not running:
        return [Check("kafka", lambda: [ok("kafka", "the embedded Kafka will be started by the bridge")]), *brokers]
    return [Check("kafka", partial(check_kafka, config, seconds), REMEDY, UnreachableError), *brokers]


def _definitions(topologies: TopologiesConfig, snapshot: Snapshot) -> Iterator[Finding]:
    # Imported for topologies alone, as below.
    from engine.doctor.topologies import check_definitions

    yield from check_definitions(topologies, snapshot)


def _topologies(topologies: TopologiesConfig, clients: KafkaClients, data: Path, seconds: float) -> Iterator[Finding]:
    # Imported for topologies alone, since they take Spark's Python library with them.
    from engine.doctor.topologies import check_topologies

    yield from check_topologies(topologies, clients, data, seconds)


def _cleaned(finding: Finding, clean: Redactor) -> Finding:
    return replace(finding, found=clean(finding.found), remedy=clean(finding.remedy))
