"""Contract of a depth: the number of messages that wait at the system of a source.

`engine.delivery.depth_watch` asks for it on a thread and a connection of its own, so that delivery is not disturbed.
"""

from __future__ import annotations

from typing import Protocol

from routes.immutable import immutable

__all__ = ["Depth", "NotSaidError", "UnsaidDepth"]


class NotSaidError(Exception):
    """The system does not say how many messages wait, or not to this login. The text is one line for users."""


class Depth(Protocol):
    """Connection to the system of a source that is asked how many messages wait; for one thread."""

    def ask(self) -> int:
        """Returns the number of messages that wait for the source: those that it has not acknowledged yet.

        Connects first if there is no connection.

        Raises:
            NotSaidError: the system does not say it.
            NotConnectedError: the system does not answer; the caller closes the depth.
            BridgeError: no connection can be made.
        """

    def close(self) -> None:
        """Ends the connection. Never raises, may be called at any time."""


@immutable
class UnsaidDepth:
    """Depth at a system that never says it."""

    reason: str
    """Reason, in one line for users."""

    def ask(self) -> int:
        """Raises NotSaidError with the reason."""
        raise NotSaidError(self.reason)

    def close(self) -> None:
        """Does nothing."""
