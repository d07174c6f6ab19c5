"""Connection test of a system for `jms-bridge doctor`: connects as a source or sink does, and disconnects.

It subscribes to nothing, and receives, sends and creates nothing. It has a client id of its own: with the client id of
a running source, the broker would refuse one of the two.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.connectors.base import NotConnectedError
from engine.connectors.products import require
from routes.model import SourceConfig
from routes.targets import System

if TYPE_CHECKING:
    from routes.model import BrokerConfig, Config

__all__ = ["VISITS", "Visit"]

Visit = Callable[["Config", "BrokerConfig", str], str]
"""Function that tests the connection with the given client id, and returns the finding as text.

Raises:
    NotConnectedError: the attempt failed.
    BridgeError: no attempt can succeed, for example because a certificate file is missing.
"""


def _stomp(config: Config, broker: BrokerConfig, client_id: str) -> str:
    from engine.connectors.stomp.session import StompSession

    session = StompSession(broker, f"'{broker.name}'", config.url(broker), client_id, 0)
    try:
        session.open()
        require(config, broker, session.product, session.server)
        return f"{session.endpoint} takes the login"
    finally:
        session.close()


def _amqp(config: Config, broker: BrokerConfig, client_id: str) -> str:
    from engine.connectors.amqp.session import AmqpSession

    session = AmqpSession(broker, f"'{broker.name}'", config.url(broker), client_id)
    try:
        session.open()
        require(config, broker, session.product, session.server)
        return f"{session.endpoint} takes the login"
    finally:
        session.close()


def _nats(config: Config, broker: BrokerConfig, client_id: str) -> str:
    from engine.connectors.nats.connection import Connection

    connection = Connection(config, replace(broker, client_id=client_id))
    try:
        connection.open()
        return f"{connection.url} takes the login"
    finally:
        connection.close()


def _dropbox(config: Config, broker: BrokerConfig, client_id: str) -> str:
    from engine.connectors.dropbox.box import examine, locate
    from engine.connectors.dropbox.folder import open_root, told

    root = config.root(broker)
    if broker.root is None and not root.exists():
        return f"{root} is not there yet; the bridge makes it"
    with open_root(str(root)) as opened:
        for destination in broker.destinations if isinstance(broker, SourceConfig) else ():
            box = locate(root, destination)
            there = next(each for each in (Path(box.path), *Path(box.path).parents) if each.exists())
            if not os.access(there, os.R_OK | os.W_OK | os.X_OK):
                raise NotConnectedError(f"the bridge may not read and write {there}; give its user the rights")
            with told():
                examine(opened, box)
    return f"{root} can be read and written"


VISITS: Mapping[System, Visit] = {
    System.STOMP: _stomp,
    System.AMQP: _amqp,
    System.NATS: _nats,
    System.DROPBOX: _dropbox,
}
"""Connection tests by the type of a source or sink. Kafka has none, since `engine.kafka.topics` checks it."""
