"""Errors at run time, each with the exit code it ends the process with.

BridgeError (routes.errors)     1  anything unforeseen that is still told in one line
├── ConfigurationError          2  the properties file has faults (routes.errors)
├── SetupError                  3  this machine cannot run it: Java, Maven, a port in use, a missing file
├── HardFailureError            4  Kafka refuses: topic missing or invalid, not authorised
├── SoftFailureError            5  a message failed and the policy of its route is `stop`
├── UnreachableError            6  Kafka is gone for longer than its timeout, or what a command asks does not answer
└── UsageError                  64 a command was called with arguments that make no sense together
"""

from __future__ import annotations

from routes.errors import BridgeError

__all__ = [
    "ClientEndedError",
    "HardFailureError",
    "ServerEndedError",
    "SetupError",
    "SoftFailureError",
    "UnreachableError",
    "UsageError",
]


class SetupError(BridgeError):
    """Something the machine has to offer is missing, too old or taken."""

    exit_code = 3


class HardFailureError(BridgeError):
    """Kafka refuses what the configuration asks for; no retry can help."""

    exit_code = 4


class SoftFailureError(BridgeError):
    """A message cannot be routed and its route says `on-soft-failure=stop`."""

    exit_code = 5


class UnreachableError(BridgeError):
    """Kafka, or what a command asks, has been unreachable for longer than its timeout."""

    exit_code = 6


class UsageError(BridgeError):
    """A command's arguments contradict each other or name what does not exist."""

    exit_code = 64


class ServerEndedError(Exception):
    """What a process runs for itself, an embedded broker or Spark's JVM, was killed or died.

    No error for a person: started again by the supervisor, which says so, the process goes on.
    """


class ClientEndedError(RuntimeError):
    """A Kafka client that can do nothing any more, see `engine.kafka.is_fatal`.

    Not for a person to repair: the supervisor starts the process again, which makes a new client.
    """
