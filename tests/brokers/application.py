"""A JMS application at a broker, by the broker's own client or by Qpid JMS: the other side of the bridge."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from engine.connectors.jms_client.class_path import files
from tests.brokers.broker import PASSWORD, USER, Protocol
from tests.brokers.packages import jars
from tests.conftest import JARS
from tests.integration.connectors.amqp_jms import PROGRAM, QpidProcess
from tests.java import java_program

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tests.brokers.broker import Broker

__all__ = ["QPID", "Application"]

QPID = "org.apache.qpid:qpid-jms-client:2.7.0"
"""The JMS client of applications that speak AMQP 1.0."""
_QPID_FACTORY = "org.apache.qpid.jms.JmsConnectionFactory"
_LOGGING = "org.slf4j:slf4j-simple:2.0.16"
_FACTORY = ".connection-factory"
_OPTIONS = (
    "jms.populateJMSXUserID=false",
    # Milliseconds until it gives up a link that the broker never answers for.
    "jms.requestTimeout=10000",
)


class Application(QpidProcess):
    """`QpidClient.java` with the client of a broker."""

    def __init__(self, broker: Broker, by: Protocol, log: Path) -> None:
        """`by` is AMQP for Qpid JMS, JMS for the broker's own client."""
        self._has_transactions = broker.has_transactions(by)
        keys = broker.settings(Protocol.JMS)
        if by is Protocol.AMQP:
            url = f"{broker.settings(by)['.url']}?{'&'.join(_OPTIONS)}"
            keys = {".packages": QPID, _FACTORY: _QPID_FACTORY, f"{_FACTORY}.remoteURI": url}
        found = jars(*keys[".packages"].split(","), _LOGGING) if ".packages" in keys else []
        found += files([each.strip() for each in keys[".class-path"].split(",")]) if ".class-path" in keys else []
        # Some clients leave the API to their users.
        found += files([f"{JARS}/jms/*jms*spec*.jar", f"{JARS}/jms/*jms-api*.jar"])
        api = broker.client_api if by is Protocol.JMS else "jakarta"
        command = java_program(PROGRAM, os.pathsep.join(map(str, found)), {"javax.jms": f"{api}.jms"})
        properties = [
            f"{key.removeprefix(f'{_FACTORY}.')}={text}" for key, text in keys.items() if f"{_FACTORY}." in key
        ]
        java, *options = command
        jvm = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        self._run([java, *jvm, *options, keys[_FACTORY], USER, PASSWORD, *properties], log)

    def send(self, destination: str, messages: Iterable[Mapping[str, str]]) -> None:
        """Sends messages, in transactions where it can; returns when the broker has all of them."""
        (super().send if self._has_transactions else super().post)(destination, messages)
