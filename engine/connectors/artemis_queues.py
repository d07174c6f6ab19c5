"""Questions about queues that ActiveMQ Artemis answers to messages at its management address, over any protocol.

A request names a queue and an attribute by properties; the answer is a JSON list with the value. Artemis answers a
login that has the permission `manage` for the management address.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from engine.connectors.base import NotConnectedError
from engine.connectors.depth import NotSaidError
from engine.connectors.products import ARTEMIS
from engine.connectors.wire import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.connectors.jms import JmsSourceConfig
    from engine.connectors.products import Product

__all__ = ["ALLOWED", "ANSWER_SECONDS", "MANAGEMENT", "SUCCEEDED", "asked_queues", "count_of", "question"]

MANAGEMENT = "activemq.management"
"""Address of requests."""
SUCCEEDED = "_AMQ_OperationSucceeded"
"""Property of an answer that says whether the request was carried out."""
ALLOWED = "the login needs the permission 'manage' for activemq.management"
"""Remedy where the broker refuses a request."""
_NO_ATTRIBUTE = "Problem while retrieving attribute"
"""Beginning of Artemis' answer about a queue that is not there (`ManagementServiceImpl.getAttribute`)."""
ANSWER_SECONDS = 10.0
"""Seconds that the broker has for an answer."""


def question(queue: str) -> Mapping[str, str]:
    """Returns the properties of a request for the number of messages in a queue."""
    return {"_AMQ_ResourceName": f"queue.{queue}", "_AMQ_Attribute": "messageCount"}


def asked_queues(source: JmsSourceConfig, product: Product, client_id: str) -> list[str]:
    """Returns the names of the queues in which the messages of a source wait.

    Topics without a durable subscription are left out: they keep no messages.

    Raises:
        NotSaidError: the number of messages in these queues is not known, or not that of the source.
    """
    if product != ARTEMIS:
        raise NotSaidError(f"the bridge has no question for {product.title}")
    queues = []
    for destination in source.destinations:
        kind, _, name = destination.partition(":")
        if kind == "queue":
            # With `::`, a queue and its address.
            queues.append(name.rpartition("::")[2])
        elif source.subscription is not None:
            queues.append(f"{client_id}.{source.subscription}.{name}")
    if not queues:
        raise NotSaidError("a topic without a durable subscription keeps no messages")
    if source.selector is not None and any(name.startswith("queue:") for name in source.destinations):
        raise NotSaidError("the broker counts all messages of a queue, not those that the selector wants")
    return queues


def count_of(answer: str, queue: str, *, succeeded: bool) -> int:
    """Returns the number in an answer about a queue.

    Raises:
        NotSaidError: the broker refuses the question.
        NotConnectedError: the answer is not a number.
    """
    try:
        (value,) = json.loads(answer)
    except (ValueError, TypeError, RecursionError):
        value = answer
    if not succeeded:
        if str(value).startswith(_NO_ATTRIBUTE):
            raise NotSaidError(f"the broker has no queue {queue} yet: its first message or receiver makes it")
        raise NotSaidError(f"the broker says of queue {queue}: {one_line(str(value))}")
    if type(value) is not int:
        raise NotConnectedError(f"the broker's answer about queue {queue} is not a number: {one_line(answer)}")
    return value
