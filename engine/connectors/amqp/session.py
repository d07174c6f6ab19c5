"""A connection to an AMQP broker with one session, shared by AMQP sources and sinks (OASIS AMQP 1.0, parts 2 and 5).

It connects, logs in, sends heart-beats, detects a silent broker, reports errors of the connection and closes in order.
Frames about links go to `links`. Nothing is read ahead: data is read only in `pump`, and while connecting or closing.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import structlog

from engine.connectors.amqp import performatives
from engine.connectors.amqp.codec.values import AmqpError, AmqpMap
from engine.connectors.amqp.frames import (
    AMQP,
    EMPTY,
    MAX_FRAME_BYTES,
    PROTOCOL_HEADER,
    SASL,
    SASL_HEADER,
    AmqpFrameError,
    AmqpFrameParser,
    frame,
)
from engine.connectors.amqp.performatives import Code, Condition, Transfer, condition_of, field, names, number, serial
from engine.connectors.amqp.sasl import (
    WITH_PASSWORD,
    WITH_TOKEN,
    MechanismChoice,
    SaslError,
    chosen,
    chosen_with_token,
)
from engine.connectors.amqp.traits import SPECIFIED, traits_of
from engine.connectors.base import LoginEndsError, NotConnectedError
from engine.connectors.products import product_of
from engine.connectors.tls import tls_context
from engine.connectors.wire import Endpoint, Endpoints, Pulse, Wire, greeting, one_line
from engine.errors import HardFailureError, UnreachableError
from engine.openid.access_tokens import access_tokens
from routes.keys.token_login import TOKEN_LOGIN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.connectors.amqp.links import Link
    from engine.connectors.amqp.sasl import SaslMechanism
    from engine.connectors.amqp.settings import AmqpConfig
    from engine.connectors.features import Feature
    from engine.openid.access_tokens import AccessToken

__all__ = ["AmqpSession"]

_PORTS = {"amqp": 5672, "amqps": 5671}
_CONNECT_SECONDS = 10.0
_ANSWER_SECONDS = 30.0
_GOOD_BYE_SECONDS = 5.0
_REFUSED_SECONDS = 30.0
_SILENT_BEATS = 3.0
_LEAST_FRAME_BYTES = 512
_NO_HANDLE = -1
_LEAST_LOGIN_SECONDS = 2.0
"""Time between two logins, however short a token holds."""
_SOLE_SECONDS = 2.0
"""Pause between attempts to become the only connection of a container."""
_IN_USE = "amqp:invalid-field"
"""Condition with which a broker refuses the container id of a connection that exists."""
_PRODUCT = "jms-bridge"
_SOLE = "sole-connection-for-container"
"""Capability of brokers that admit one connection of a container at a time, for clients that ask for it."""
_log = structlog.get_logger(__name__)


def _endpoint(url: str) -> Endpoint:
    """Returns the endpoint of `amqp://host:port` or `amqps://host:port`, a URL checked by the configuration."""
    parts = urlsplit(url)
    port = parts.port or _PORTS[parts.scheme]
    return Endpoint(parts.scheme, parts.hostname or "127.0.0.1", port, parts.scheme == "amqps")


class AmqpSession:
    """A session with one broker over one connection at a time; `open` makes a new one. For one thread."""

    def __init__(self, broker: AmqpConfig, who: str, url: str, container: str, *, sole: bool = False) -> None:
        """Sets up the session without connecting. SetupError if a TLS file is missing or invalid.

        The backups of the broker at `url` are in its settings. `who` names the source or sink in logs, `container` is
        the container id for the broker. With `sole` the broker has to refuse a second connection with this container
        id.
        """
        self._endpoints = Endpoints([_endpoint(each) for each in (url, *broker.backup_urls)])
        self.channel = 0
        self.product = product_of("")
        """Product of the broker, as it told at the latest connection."""
        self.traits = SPECIFIED
        """Traits of the broker, from the latest connection on."""
        self.server = ""
        """Name and version of the broker as it tells them."""
        self.capabilities: frozenset[str] = frozenset()
        """Capabilities that the broker offers beyond the specification."""
        self.max_frame_bytes = _LEAST_FRAME_BYTES
        """Largest frame that the broker accepts."""
        self.remote_window = 0
        """Number of transfers that the broker's session window still allows."""
        self.renew_at = math.inf
        """Time, by the monotonic clock, from which a new login is due."""
        self._tokens = access_tokens(broker.tokens, f"{broker.key}{TOKEN_LOGIN}") if broker.tokens.is_set else None
        self._accepted: AccessToken | None = None
        """The last access token that the broker has taken."""
        self.on_disposition: Callable[[Sequence[Any]], None] = lambda _: None
        """Called with the fields of each disposition from the broker."""
        self._broker = broker
        self._who = who
        self._container = container
        self._sole = sole
        self._tls = tls_context(broker) if self.endpoint.tls else None
        self._wire: Wire | None = None
        self._pulse: Pulse | None = None
        self._parser = AmqpFrameParser()
        self._links: dict[int, Link] = {}
        """Links by the bridge's handles."""
        self._remote: dict[int, Link] = {}
        """Links by the broker's handles."""
        self._next_incoming = 0
        self._next_outgoing = 0
        self._next_delivery = 0
        self._open = False
        self.ended: Condition | None = None
        """Reason why the broker has ended the session of the latest connection; None if it gave none."""
        self._silence = 0.0
        self._heard = 0.0
        self._unsent: NotConnectedError | None = None
        """Reason why frames could not be sent; None as long as all could."""
        self._is_hearing = False

    @property
    def endpoint(self) -> Endpoint:
        """Address of the current connection, or of the next one."""
        return self._endpoints.first

    @property
    def _host(self) -> str:
        """Name of the virtual host."""
        return self.endpoint.host if self._broker.virtual_host is None else self._broker.virtual_host

    def open(self) -> None:
        """Connects to the broker or one of its backups, logs in and begins the session.

        Raises:
            NotConnectedError: one of these failed; with a longer back-off after a refused login.
            HardFailureError: the broker cannot admit a connection as the only one, and the settings ask for it.
        """
        self.hang_up()
        # Before the addresses, none of which has failed if the issuer is away.
        token = self._token()
        self._endpoints.connect(lambda endpoint: self._connect(endpoint, token))

    def _connect(self, endpoint: Endpoint, token: AccessToken | None) -> None:
        self.hang_up()
        self._parser = AmqpFrameParser()
        self.ended = None
        self._unsent = None
        self._links, self._remote = {}, {}
        self._next_incoming = self._next_outgoing = self._next_delivery = 0
        self._wire, self._heard, self._silence = Wire(endpoint, self._tls, _CONNECT_SECONDS), time.monotonic(), 0.0
        deadline = time.monotonic() + _CONNECT_SECONDS
        with greeting(endpoint, "amqps"):
            self._login(deadline, token)
        self.renew_at = math.inf if token is None else _renewal(token)
        self._greet(PROTOCOL_HEADER, deadline)
        beat = self._broker.heartbeat_seconds
        # A broker sends a frame at least every half of the idle time-out that it is told, so it is told twice the
        # interval.
        opened = performatives.open_(
            self._container, self._host, int(beat * 2000), _PRODUCT, (_SOLE,) if self._sole else ()
        )
        self.send(opened, performatives.begin())
        try:
            self._opened(self._expect(deadline, Code.OPEN)[1], beat)
            self._begun(self._expect(deadline, Code.BEGIN)[1])
        except AmqpError as error:
            raise self._senseless(error) from error
        # A broker that refuses the connection says so behind an open without capabilities.
        if self._sole and _SOLE not in self.capabilities:
            self.hang_up()
            raise HardFailureError(
                f"{self._who}: {self.server or self.endpoint} does not support sole-connection; remove that line"
            )
        self._hear(b"")

    def send(self, *bodies: bytes) -> None:
        """Sends performatives in one write; NotConnectedError if the connection is lost."""
        self.write(b"".join([frame(0, body) for body in bodies]))

    def write(self, frames: bytes) -> None:
        """Sends encoded frames in one write.

        Raises:
            NotConnectedError: the connection is lost; with the reason that the broker gave, if it gave one before.
        """
        wire = self._opened_wire
        try:
            wire.send(frames)
        except NotConnectedError as error:
            self._unsent = self._unsent or error
            # What is heard just now, and sends this, is heard to its end first.
            if not self._is_hearing:
                self._hear_out(wire)
                raise self._unsent from None

    def attach(self, link: Link) -> None:
        """Sends the attach of a link; `Link.answered` gets the broker's answer."""
        link.handle = next(free for free in range(len(self._links) + 1) if free not in self._links)
        self._links[link.handle] = link
        self.send(link.attachment())

    def await_attached(self, link: Link) -> None:
        """Waits until the broker has attached a link; NotConnectedError with the broker's reason if it refuses."""
        deadline = time.monotonic() + _ANSWER_SECONDS
        while not link.attached and link.fault is None:
            if time.monotonic() > deadline:
                raise self.fail(f"the broker has not answered for {_ANSWER_SECONDS:.0f} s")
            self.pump(deadline - time.monotonic())
        if link.fault is not None:
            raise self.fail(f"the broker says: {link.fault}", _REFUSED_SECONDS)

    def detach(self, link: Link) -> None:
        """Ends a link for good; the caller may not use it any more."""
        link.leaving = True
        self.send(performatives.detach(link.handle, closed=True))

    def give_credit(self, link: Link, delivery_count: int, credit: int) -> None:
        """Sends a flow with the delivery count and the credit of a link."""
        self.send(performatives.flow(self._next_incoming, self._next_outgoing, link.handle, delivery_count, credit))

    def next_delivery(self) -> int:
        """Returns a new delivery id for a message to the broker."""
        following, self._next_delivery = self._next_delivery, serial(self._next_delivery + 1)
        return following

    def sent_transfer(self) -> None:
        """Counts a transfer that is sent, and takes it off the broker's session window."""
        self._next_outgoing = serial(self._next_outgoing + 1)
        self.remote_window -= 1

    def pump(self, timeout_seconds: float) -> bool:
        """Reads bytes that have arrived, waiting for them at most `timeout_seconds`, and hands it to the links.

        Returns False if nothing arrived. NotConnectedError if the connection is lost or the broker is silent for too
        long.
        """
        data = self._opened_wire.read(timeout_seconds)
        now = time.monotonic()
        if not data:
            if self._silence and now - self._heard > self._silence:
                raise self.fail(f"the broker has been silent for {now - self._heard:.0f} s, in spite of heart-beats")
            return False
        self._heard = now
        self._hear(data)
        if self._unsent is not None:
            self._hear_out(self._opened_wire)
            raise self._unsent
        return True

    @property
    def drops_duplicates(self) -> bool:
        """See `ProductSession`."""
        return self.traits.drops_duplicates

    @property
    def lacks(self) -> Mapping[Feature, str]:
        """See `ProductSession`."""
        return self.traits.lacks

    @property
    def unnoticed_seconds(self) -> float:
        """Seconds until a dead connection is noticed."""
        return self._broker.heartbeat_seconds * _SILENT_BEATS

    def close(self, links: Sequence[Link] = ()) -> None:
        """Detaches the links and closes the connection in order. Never raises.

        Where the connection still works, the call returns when the broker has taken everything that was sent. Received
        messages without an outcome return to the broker.
        """
        if self._wire is None:
            return
        try:
            if self._open:
                self._leave(links)
        except NotConnectedError as error:
            _log.warning("closed without confirmation", who=self._who, broker=str(self.endpoint), why=str(error))
        finally:
            self.hang_up()

    def fail(self, why: str, back_off_seconds: float | None = None) -> NotConnectedError:
        """Ends the connection at once; returns the exception to raise."""
        self.hang_up()
        return NotConnectedError(why, back_off_seconds)

    def hang_up(self) -> None:
        """Ends the connection without a close performative."""
        wire, self._wire, self._open = self._wire, None, False
        pulse, self._pulse = self._pulse, None
        if pulse is not None:
            pulse.stop()
        if wire is not None:
            wire.close()

    @property
    def _opened_wire(self) -> Wire:
        if self._wire is None:
            msg = "not connected"
            raise NotConnectedError(msg)
        return self._wire

    def check_login(self, *, is_idle: bool) -> None:
        """Ends a connection whose login has to be renewed, when nothing is under way on it.

        Raises:
            LoginEndsError: it has ended.
        """
        if is_idle and time.monotonic() >= self.renew_at:
            raise LoginEndsError("its access token expires soon")

    def _token(self) -> AccessToken | None:
        """Returns the access token for the next login; None if the login is another.

        Raises:
            NotConnectedError: the issuer gives none.
        """
        if self._tokens is None:
            return None
        try:
            return self._tokens.current()
        except UnreachableError as error:
            raise NotConnectedError(str(error)) from error
        except HardFailureError as error:
            raise NotConnectedError(str(error), _REFUSED_SECONDS) from error

    def _refused(self, mechanism: SaslMechanism, token: AccessToken | None) -> NotConnectedError:
        """The error for a login that the broker refuses; a token that it has taken before is replaced at once."""
        user = self._broker.username
        who = f"the login of user '{user}'" if user is not None else "a login without a user name"
        if token is None or self._tokens is None:
            return self.fail(f"the broker refuses {who}", _REFUSED_SECONDS)
        self._tokens.refused(token)
        # A broker may repeat what it was shown.
        reason = one_line(mechanism.reason.replace(token.text, "…"))
        why = (
            f"the broker refuses the access token of the client '{self._broker.tokens.client_id}'"
            f"{reason and f': {reason}'}; correct {self._broker.key}{TOKEN_LOGIN}scope, or allow the client at the "
            "broker, whose log may say more"
        )
        return self.fail(why, None if token == self._accepted else _REFUSED_SECONDS)

    def _login(self, deadline: float, token: AccessToken | None) -> None:
        self._greet(SASL_HEADER, deadline)
        _, offered = self._expect(deadline, Code.SASL_MECHANISMS, kind=SASL)
        try:
            mechanism = self._mechanism(names(field(offered, 0)), token)
            self.write(frame(0, performatives.sasl_init(mechanism.name, mechanism.first(), self._host), SASL))
            while True:
                code, fields = self._expect(deadline, Code.SASL_CHALLENGE, Code.SASL_OUTCOME, kind=SASL)
                if code == Code.SASL_OUTCOME:
                    break
                response = mechanism.answer(_bytes(field(fields, 0)))
                self.write(frame(0, performatives.sasl_response(response), SASL))
            if field(fields, 0) != 0:
                raise self._refused(mechanism, token)
            mechanism.accepted(_bytes(field(fields, 1)))
            self._accepted = token
        except SaslError as error:
            raise self.fail(f"the broker {error}", _REFUSED_SECONDS) from error

    def _mechanism(self, offered: Sequence[str], token: AccessToken | None) -> SaslMechanism:
        """Chooses a mechanism for the login; NotConnectedError if the broker offers none that fits."""
        broker = self._broker
        user, password = broker.username, broker.password or ""
        has_certificate, usable = broker.tls_certificate is not None, broker.mechanism.among(offered)
        if token is None:
            found = chosen(usable, user, password, is_encrypted=self.endpoint.tls, has_certificate=has_certificate)
        else:
            found = chosen_with_token(usable, user or broker.tokens.client_id or "", token.text)
        if found is not None:
            return found
        shown = one_line(", ".join(offered)) or "nothing"
        wants_token = token is None and any(each in WITH_TOKEN[:-1] for each in offered)
        if broker.mechanism is not MechanismChoice.AUTO:
            why = f"the broker offers {shown}, and {broker.key}mechanism is {broker.mechanism}; correct one of them"
        elif wants_token and not any(each in WITH_PASSWORD for each in offered):
            why = f"the broker offers {shown}, so it wants access tokens; set {broker.key}{TOKEN_LOGIN}client.id"
        elif token is None and user is None:
            why = f"the broker offers no login without a user name, only {shown}; set username and password"
        else:
            known = ", ".join(WITH_PASSWORD if token is None else WITH_TOKEN)
            why = f"the broker offers {shown}; the bridge logs in by {known}, so allow one of these at the broker"
        raise self.fail(why, _REFUSED_SECONDS)

    def _greet(self, header: bytes, deadline: float) -> None:
        """Exchanges protocol headers; NotConnectedError if the broker answers with another protocol."""
        self.write(header)
        answer, data = None, b""
        try:
            while (answer := self._parser.header(data)) is None:
                data = self._read(deadline)
        except AmqpFrameError as error:
            raise self.fail(f"the broker sent {error}; is this its AMQP port?") from error
        if answer != header:
            what = "login" if header == SASL_HEADER else "AMQP 1.0"
            raise self.fail(f"the broker speaks no {what} here, but {answer!r}", _REFUSED_SECONDS)

    def _expect(self, deadline: float, *codes: Code, kind: int = AMQP) -> tuple[int, list[Any]]:
        """Waits for one of several performatives while the connection is being set up; returns its code and fields."""
        data = b""
        try:
            while True:
                frame = self._parser.one(data)
                if frame is None:
                    data = self._read(deadline)
                    continue
                data = b""
                performative, fields = performatives.read(frame[2])
                if performative == Code.CLOSE:
                    raise self._closed(fields, _REFUSED_SECONDS)
                if frame[0] == kind and performative in codes:
                    return performative, fields
        except (AmqpFrameError, AmqpError) as error:
            raise self._senseless(error) from error

    def _read(self, deadline: float) -> bytes:
        """Returns the next bytes while the connection is being set up."""
        while (left := deadline - time.monotonic()) > 0:
            if data := self._opened_wire.read(left):
                return data
        raise self.fail(f"the broker has not answered for {_CONNECT_SECONDS:.0f} s; is this its AMQP port?")

    def _opened(self, fields: list[Any], beat: float) -> None:
        properties = field(fields, 9)
        told = dict(properties) if isinstance(properties, AmqpMap) else {}
        name = " ".join(str(told.get(each, "")) for each in ("product", "version"))
        self.server = one_line(name)
        self.capabilities = frozenset(names(field(fields, 7)))
        self.product = self._broker.broker or product_of(self.server)
        self.traits = traits_of(self.product, self.capabilities, self.server)
        self.max_frame_bytes = max(min(number(fields, 2, 2**31), MAX_FRAME_BYTES), _LEAST_FRAME_BYTES)
        if wanted := number(fields, 4):
            beat = min(beat, wanted / 2000)
        self._silence = self._broker.heartbeat_seconds * _SILENT_BEATS
        self._pulse = Pulse(self._opened_wire, beat, EMPTY)

    def _begun(self, fields: list[Any]) -> None:
        self._next_incoming = number(fields, 1)
        self.remote_window = number(fields, 2)
        self._open = True

    def _hear_out(self, wire: Wire) -> None:
        """Handles frames that the broker sent before the connection broke; NotConnectedError if it said why."""
        while self._open:
            try:
                data = wire.read(0)
            except NotConnectedError:
                return
            if not data:
                return
            self._hear(data)

    def _hear(self, data: bytes) -> None:
        self._is_hearing = True
        try:
            for kind, _, body in self._parser.feed(data):
                if kind == AMQP:
                    self._take(body)
        except (AmqpFrameError, AmqpError) as error:
            raise self._senseless(error) from error
        finally:
            self._is_hearing = False

    def _take(self, body: bytes) -> None:
        if performatives.is_transfer(body):
            self._transferred(performatives.read_transfer(body))
            return
        code, fields = performatives.read(body)
        if code == Code.TRANSFER:
            # A message must not be dropped: its credit would never be replaced.
            raise AmqpError("a transfer whose descriptor is neither a ulong nor a symbol")
        if code == Code.DISPOSITION:
            self.on_disposition(fields)
        elif code == Code.FLOW:
            self._flowed(fields)
        elif code == Code.ATTACH:
            self._attached(fields)
        elif code == Code.DETACH:
            self._detached(fields)
        elif code == Code.CLOSE:
            raise self._closed(fields)
        elif code == Code.END:
            self.ended = condition = condition_of(field(fields, 0))
            raise self.fail(f"the broker says: {condition}" if condition else "the broker has ended the session")

    def _transferred(self, transfer: Transfer) -> None:
        self._next_incoming = serial(self._next_incoming + 1)
        if (link := self._remote.get(transfer.handle)) is not None:
            link.transferred(transfer)

    def _flowed(self, fields: list[Any]) -> None:
        under_way = serial(self._next_outgoing - number(fields, 0))
        self.remote_window = max(number(fields, 1) - under_way, 0)
        link = self._remote.get(number(fields, 4, _NO_HANDLE))
        if link is not None:
            link.flowed(fields)
        if field(fields, 9):
            self.send(performatives.flow(self._next_incoming, self._next_outgoing))

    def _attached(self, fields: list[Any]) -> None:
        name, handle, role = field(fields, 0), number(fields, 1), bool(field(fields, 2))
        for link in self._links.values():
            # The ends of a link have opposite roles.
            if link.name == name and bool(link.role) is not role and not link.attached:
                self._remote[handle] = link
                link.answered(fields)
                return
        raise self.fail("the broker attaches a link that the bridge did not request")

    def _detached(self, fields: list[Any]) -> None:
        link = self._remote.pop(number(fields, 0), None)
        if link is None:
            return
        self._links.pop(link.handle, None)
        link.detached(condition_of(field(fields, 2)))
        if not link.leaving:
            self.send(performatives.detach(link.handle, closed=bool(field(fields, 1))))

    def _senseless(self, error: Exception) -> NotConnectedError:
        return self.fail(f"the broker sent bytes that are not AMQP: {error}")

    def _closed(self, fields: list[Any], back_off_seconds: float | None = None) -> NotConnectedError:
        condition = condition_of(field(fields, 0))
        if condition is None:
            return self.fail("the broker has closed the connection")
        if self._sole and not self._open and condition.name == _IN_USE:
            why = f"another connection of '{self._container}' is open, and the source has to be the only one"
            return self.fail(f"{why} (sole-connection)", _SOLE_SECONDS)
        return self.fail(f"the broker says: {condition}", back_off_seconds)

    def _leave(self, links: Sequence[Link]) -> None:
        farewell = [performatives.detach(link.handle, closed=link.ends) for link in links if link.attached]
        self.send(*farewell, performatives.end(), performatives.close())
        deadline = time.monotonic() + _GOOD_BYE_SECONDS
        data = b""
        while True:
            try:
                for _, _, body in self._parser.feed(data):
                    # Messages that still arrive return to the broker, as they get no outcome.
                    if not performatives.is_transfer(body) and performatives.read(body)[0] == Code.CLOSE:
                        return
            except (AmqpFrameError, AmqpError) as error:
                raise self._senseless(error) from error
            left = deadline - time.monotonic()
            if left <= 0:
                raise self.fail(f"the broker has not answered for {_GOOD_BYE_SECONDS:.0f} s")
            data = self._opened_wire.read(left)


def _renewal(token: AccessToken) -> float:
    """Returns the time of the next login: before the token ends, or then if its issuer gave no newer one in time."""
    now = time.monotonic()
    return max(token.renew_at if token.renew_at > now else token.ends_at, now + _LEAST_LOGIN_SECONDS)


def _bytes(value: object) -> bytes:
    """Returns a binary field; empty if the broker sent none or something else."""
    return bytes(value) if isinstance(value, bytes) else b""
