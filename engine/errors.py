"""Errors at run time, each with the exit code that it ends the process with.

BridgeError (routes.errors)     1  any other error that the bridge reports in one line
├── ConfigurationError          2  the properties file has faults (routes.errors)
├── SetupError                  3  this machine cannot run the bridge: Java, Maven, a port in use, a missing file
├── HardFailureError            4  Kafka refuses a request: topic missing or invalid, not authorised
├── SoftFailureError            5  a message failed and the policy of its route is `stop`
├── UnreachableError            6  Kafka, or another server that a command calls, does not answer within its timeout
└── UsageError                  64 the arguments of a command contradict each other
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
    """A program, file or port that the bridge needs on its machine is missing, too old or taken."""

    exit_code = 3


class HardFailureError(BridgeError):
    """Kafka refuses a request that the configuration demands; no retry can help."""

    exit_code = 4


class SoftFailureError(BridgeError):
    """A message cannot be routed, and its route has the policy `on-soft-failure=stop`."""

    exit_code = 5


class UnreachableError(BridgeError):
    """Kafka, or another server that a command calls, has been unreachable for longer than its timeout."""

    exit_code = 6


class UsageError(BridgeError):
    """A command's arguments contradict each other or name a thing that does not exist."""

    exit_code = 64


class ServerEndedError(Exception):
    """A server that a process runs as its child, an embedded broker or Spark's JVM, was killed or died.

    The operator need not act: the process ends, and the supervisor logs this and starts the process again.
    """


class ClientEndedError(RuntimeError):
    """A Kafka client has failed for good, see `engine.kafka.errors.is_fatal`.

    The operator need not act: the supervisor starts the process again, and the new process makes a new client.
    """
