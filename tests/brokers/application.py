"""A JMS application at a broker, by the broker's own client or by Qpid JMS: the other side of the bridge."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from engine.connectors.jms_client.class_path import files
from tests.brokers.broker import PASSWORD, USER, Protocol
from tests.brokers.packages import jars
from tests.integration.connectors.amqp_jms import PROGRAM, QpidClient
from tests.java import java_program

if TYPE_CHECKING:
    from pathlib import Path

    from tests.brokers.broker import Broker

__all__ = ["QPID", "Application"]

QPID = "org.apache.qpid:qpid-jms-client:2.7.0"
"""The JMS client of applications that speak AMQP 1.0."""
_QPID_FACTORY = "org.apache.qpid.jms.JmsConnectionFactory"
_LOGGING = "org.slf4j:slf4j-simple:2.0.16"
_FACTORY = ".connection-factory"


class Application(QpidClient):
    """`QpidClient.java` with the client of a broker."""

    def __init__(self, broker: Broker, by: Protocol, log: Path) -> None:
        """`by` is AMQP for Qpid JMS, JMS for the broker's own client."""
        keys = broker.settings(Protocol.JMS)
        if by is Protocol.AMQP:
            url = f"{broker.settings(by)['.url']}?jms.populateJMSXUserID=false"
            keys = {".packages": QPID, _FACTORY: _QPID_FACTORY, f"{_FACTORY}.remoteURI": url}
        found = jars(*keys[".packages"].split(","), _LOGGING) if ".packages" in keys else []
        found += files(keys[".class-path"].split(",")) if ".class-path" in keys else []
        api = broker.client_api if by is Protocol.JMS else "jakarta"
        command = java_program(PROGRAM, os.pathsep.join(map(str, found)), {"javax.jms": f"{api}.jms"})
        properties = [
            f"{key.removeprefix(f'{_FACTORY}.')}={text}" for key, text in keys.items() if f"{_FACTORY}." in key
        ]
        java, *options = command
        jvm = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        self._begin([java, *jvm, *options, keys[_FACTORY], USER, PASSWORD, *properties], log)
