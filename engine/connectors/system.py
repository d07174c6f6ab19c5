"""The description of a system with how it is reached: makers of sources and sinks, connection test, command line.

Each folder of a system has a `Connector` as `SYSTEM` in its module `system`, which imports no client library: methods
import what they need, so that a library is loaded only in processes that use it.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from engine.connectors.depth import UnsaidDepth
from routes.systems import BrokerConfig, SinkConfig, SourceConfig, System

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.connectors.base import Sink, Source
    from engine.connectors.depth import Depth
    from engine.connectors.endpoint import SystemEndpoint

__all__ = ["Connector", "connector"]

BrokerT = TypeVar("BrokerT", bound=BrokerConfig)
SourceT = TypeVar("SourceT", bound=SourceConfig)
SinkT = TypeVar("SinkT", bound=SinkConfig)

_JMS_ADDRESS = re.compile(r"/?(queue|topic)[/:](.+)")


class Connector(System, Generic[BrokerT, SourceT, SinkT]):
    """A system with its source, its sink and its connection test."""

    source_class: str = ""
    """Module in the system's folder, and class there that `make_source` calls with its arguments, as `source.XSource`;
    empty: the system makes its sources itself, or has none."""
    sink_class: str = ""
    """Module and class for `make_sink`, as `source_class`."""
    depth_class: str = ""
    """Module and class for `make_depth`, which calls it with the endpoint; empty: `depth_unsaid`."""
    depth_unsaid: str = "the bridge has no question for it"
    """Reason, in one line for users, why it never says how many messages wait."""
    has_login: bool = True
    """True if its servers know users."""
    port_name: str = ""
    """Words for the port of its servers, for hints; empty: it has none."""
    not_sent: frozenset[str] = frozenset({"JMSDestination", "JMSRedelivered", "JMSXDeliveryCount"})
    """Fields of a message that its sender cannot choose: they say how it came."""
    passing_reply_address: str = "queue:jms-bridge.reply.{}"
    """Address at which `jms-bridge request` awaits one reply; `{}` is a unique word."""
    remedy: str = ""
    """Advice where it cannot be reached, `{key}` is `source.NAME` or `sink.NAME`; empty: about its URL."""

    def make_source(self, endpoint: SystemEndpoint[SourceT], worker: int) -> Source:
        """Makes the source for one worker of `source.NAME`, not yet connected; workers count from 1."""
        made: Source = self._class(self.source_class)(endpoint, worker)
        return made

    def make_depth(self, endpoint: SystemEndpoint[SourceT]) -> Depth:
        """Makes the depth of `source.NAME`, not yet connected."""
        made: Depth
        made = self._class(self.depth_class)(endpoint) if self.depth_class else UnsaidDepth(self.depth_unsaid)
        return made

    def make_replies(self, endpoint: SystemEndpoint[SourceT], worker: int) -> Source:
        """Makes the source that receives replies for a sink, as `make_source` does."""
        return self.make_source(endpoint, worker)

    def make_sink(self, endpoint: SystemEndpoint[SinkT], worker: int) -> Sink:
        """Makes the sink for one worker of `sink.NAME`, not yet connected; workers count from 1."""
        made: Sink = self._class(self.sink_class)(endpoint, worker)
        return made

    def check_connection(self, endpoint: SystemEndpoint[BrokerT], client_id: str) -> str:
        """Connects as a source or sink does, disconnects, and returns the finding as text, for `jms-bridge doctor`.

        It subscribes to nothing, and receives, sends and creates nothing. It has a client id of its own: with the
        client id of a running source, the broker would refuse one of the two.

        Raises:
            NotConnectedError: the attempt failed.
            BridgeError: no attempt can succeed, for example because a certificate file is missing.
        """
        raise NotImplementedError

    def doubts(self, endpoint: SystemEndpoint[BrokerT]) -> Iterator[tuple[str, str]]:
        """Yields risks of losing messages at the system of a source or sink, with remedies, for `jms-bridge doctor`.

        Connects as `check_connection` does, and raises as it does.
        """
        yield from ()

    def check_listener(self, broker: BrokerT) -> None:
        """Checks the files of a source or sink that listens itself; raises BridgeError if it could not start."""

    # What `send`, `receive` and `request` ask.

    @property
    def url_form(self) -> str:
        """Form of the URLs that a command line takes."""
        return " or ".join(f"{scheme.name}://HOST:PORT" for scheme in self.schemes)

    def at(self, url: str) -> dict[str, Any] | None:
        """Returns the settings of a connection that a URL of the command line stands for; None if it is not a URL."""
        schemes = "|".join(re.escape(scheme.name) for scheme in self.schemes)
        return {"url": url} if re.fullmatch(rf"(?:{schemes})://[^\s/@]+:[0-9]{{1,5}}/?", url) else None

    def spelt(self, address: str, *, wildcards: bool) -> str | None:
        """Returns an address as its sources and sinks take it; None for the address of another system."""
        if not re.fullmatch(self.addresses.pattern, address):
            return None
        match = _JMS_ADDRESS.fullmatch(address)
        # The name alone is that of a queue.
        return f"{match[1]}:{match[2]}" if match else f"queue:{address.removeprefix('/')}"

    def covers(self, destination: str, address: str) -> bool:
        """Returns True if messages of an address come to a source that takes them from a destination."""
        return destination == address

    def examples(self, source: SourceT) -> Iterator[tuple[str, str]]:
        """Yields the destinations of a source: as `send` takes them, and as the messages from there carry them."""
        for destination in source.destinations:
            yield f"{source.name}:{destination}", destination

    def keeps(self, address: str) -> bool:
        """Returns True if a message at an address is kept until a consumer comes."""
        return False

    def _class(self, name: str) -> Any:
        """Imports a class of the system's folder by the names of module and class."""
        folder, (module, _, class_name) = type(self).__module__.rpartition(".")[0], name.rpartition(".")
        return getattr(import_module(f"{folder}.{module}"), class_name)


def connector(system: System) -> Connector[Any, Any, Any]:
    """Returns how a system is reached."""
    assert isinstance(system, Connector)
    return system
