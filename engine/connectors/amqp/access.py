"""Who may connect to a listener, and which addresses they may use.

A login is SASL PLAIN with the user name and password of the configuration; without them ANONYMOUS is enough. Where
clients have to show a certificate, they may also leave it at that (EXTERNAL).
"""

from __future__ import annotations

import hmac
import ssl
from typing import TYPE_CHECKING, Any

from engine.connectors.amqp.annotations import PREFIXES
from engine.connectors.amqp.answers import names
from engine.connectors.amqp.performatives import field
from engine.connectors.tls import loaded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from routes.model import BrokerConfig

__all__ = ["Addresses", "Logins", "address_of", "server_tls"]

_ANY = "*"
_TOPICS = frozenset(("topic", "temporary-topic"))
_ADDRESS = 0
_NULS = 2


class Logins:
    """The ways in."""

    def __init__(self, broker: BrokerConfig) -> None:
        self._user = broker.username
        self._password = broker.password or ""
        self.required = broker.username is not None
        """Whether nobody gets in without a login."""

    def mechanisms(self, *, proven: bool) -> Sequence[str]:
        """What to offer; `proven` is whether the client has shown a certificate that is to be trusted."""
        return (*(("EXTERNAL",) if proven else ()), "PLAIN" if self.required else "ANONYMOUS")

    def admit(self, mechanism: str, response: bytes, *, proven: bool) -> bool:
        """Whether a client may come in."""
        if mechanism not in self.mechanisms(proven=proven):
            return False
        if mechanism != "PLAIN":
            return True
        parts = response.split(b"\0")
        given = b"\0".join(parts[1:])
        wanted = f"{self._user}\0{self._password}".encode()
        # Takes as long for a wrong password as for a right one.
        return len(parts) == _NULS + 1 and hmac.compare_digest(given, wanted)


class Addresses:
    """The queues and topics that clients may use."""

    def __init__(self, allowed: Sequence[str]) -> None:
        """`queue:NAME`, `topic:NAME`, with a `*` at its end what begins like that; `*` alone is everything."""
        self._names = frozenset(each for each in allowed if not each.endswith(_ANY))
        self._beginnings = tuple(each.removesuffix(_ANY) for each in allowed if each.endswith(_ANY))

    def __contains__(self, destination: str) -> bool:
        return destination in self._names or destination.startswith(self._beginnings)


def address_of(fields: Sequence[Any], capabilities: int) -> str | None:
    """`queue:NAME` or `topic:NAME` of a client's source or target; None for the one without an address.

    JMS clients tell the kind by a capability, which is field number `capabilities`; others by nothing or a prefix:
    `topic://prices`.
    """
    text = field(fields, _ADDRESS)
    if not isinstance(text, str) or not text:
        return None
    for prefix, kind in PREFIXES.items():
        if text.startswith(prefix):
            return f"{kind}:{text.removeprefix(prefix)}"
    is_topic = _TOPICS.intersection(names(field(fields, capabilities)))
    return f"{'topic' if is_topic else 'queue'}:{text}"


def server_tls(broker: BrokerConfig) -> ssl.SSLContext:
    """The bridge's certificate, and which ones clients have to show; SetupError where a file is no good.

    With `tls.ca` nobody connects without a certificate that it has signed.
    """
    context = loaded(broker, ssl.Purpose.CLIENT_AUTH)
    if broker.tls_ca and broker.tls_verify:
        context.verify_mode = ssl.CERT_REQUIRED
    return context
