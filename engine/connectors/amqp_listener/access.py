"""Access control of an AMQP listener: logins, addresses that clients may use, and TLS.

A login is SASL PLAIN with the user name and password of the configuration; without a configured user name, ANONYMOUS or
no login at all is enough, and a client that has shown a trusted certificate may log in with that (EXTERNAL).
"""

from __future__ import annotations

import hmac
import ssl
from typing import TYPE_CHECKING, Any

from engine.connectors.amqp.annotations import PREFIXES
from engine.connectors.amqp.performatives import field, names
from engine.connectors.tls import loaded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.amqp.settings import AmqpConfig

__all__ = ["AllowedDestinations", "Logins", "address_of", "server_tls"]

_ANY = "*"
_TOPICS = frozenset(("topic", "temporary-topic"))
_ADDRESS = 0
_NULS = 2


class Logins:
    """Logins that a listener accepts."""

    def __init__(self, broker: AmqpConfig) -> None:
        self._user = broker.username
        self._password = broker.password or ""
        self.required = broker.username is not None
        """True if a client has to log in: the configuration has a user name."""

    def mechanisms(self, *, proven: bool) -> Sequence[str]:
        """SASL mechanisms to offer. `proven`: the client has shown a certificate that `tls.ca` has signed."""
        if self.required:
            # A certificate must not stand in for the password: the configuration asks for both.
            return ("PLAIN",)
        return ("EXTERNAL", "ANONYMOUS") if proven else ("ANONYMOUS",)

    def admit(self, mechanism: str, response: bytes, *, proven: bool) -> bool:
        """Returns True if a client may log in with this SASL mechanism and initial response.

        The response of PLAIN (RFC 4616) is authorization identity, user name and password, separated by NUL; the first
        is ignored.
        """
        if mechanism not in self.mechanisms(proven=proven):
            return False
        if mechanism != "PLAIN":
            return True
        parts = response.split(b"\0")
        given = b"\0".join(parts[1:])
        wanted = f"{self._user}\0{self._password}".encode()
        # compare_digest takes as long for a wrong password as for the right one.
        return len(parts) == _NULS + 1 and hmac.compare_digest(given, wanted)


class AllowedDestinations:
    """Queues and topics that clients may send to."""

    def __init__(self, allowed: Sequence[str]) -> None:
        """Takes `queue:NAME` and `topic:NAME`; `*` at the end stands for any ending, `*` alone for every address."""
        self._names = frozenset(each for each in allowed if not each.endswith(_ANY))
        self._beginnings = tuple(each.removesuffix(_ANY) for each in allowed if each.endswith(_ANY))

    def __contains__(self, destination: str) -> bool:
        return destination in self._names or destination.startswith(self._beginnings)


def address_of(fields: Sequence[Any], capabilities: int) -> str | None:
    """Destination of a client's source or target, `queue:NAME` or `topic:NAME`; None if it has no address.

    A prefix such as `topic://` tells the kind; without one the capability does that JMS clients set, which is field
    number `capabilities`. Without either the address is a queue.
    """
    text = field(fields, _ADDRESS)
    if not isinstance(text, str) or not text:
        return None
    for prefix, kind in PREFIXES.items():
        if text.startswith(prefix):
            return f"{kind}:{text.removeprefix(prefix)}"
    is_topic = _TOPICS.intersection(names(field(fields, capabilities)))
    return f"{'topic' if is_topic else 'queue'}:{text}"


def server_tls(broker: AmqpConfig) -> ssl.SSLContext:
    """TLS context of a listener: its own certificate, and the authorities of its clients' certificates.

    With `tls.ca`, unless `tls.verify` is off, a client has to show a certificate that `tls.ca` has signed.

    Raises:
        SetupError: TLS cannot use one of the files.
    """
    context = loaded(broker, ssl.Purpose.CLIENT_AUTH)
    if broker.tls_ca and broker.tls_verify:
        context.verify_mode = ssl.CERT_REQUIRED
    return context
