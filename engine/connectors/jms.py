"""JMS brokers: the settings, checks and addresses that all systems have which are one.

Selectors are parsed as predicates. A broker may accept texts that are not predicates: Artemis has `hyphenated_props:`,
`XPATH` and comments, a name in double quotes, and calculates with texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from engine.connectors.products import PRODUCT, RABBITMQ, Product
from engine.connectors.system import BrokerT, Connector, SinkT, SourceT
from routes.errors import Fault, Level, PredicateError, PredicateSyntaxError
from routes.keys.addresses import plainly
from routes.keys.table import key
from routes.keys.values import FLAG, TEXT, BadValueError, ValueKind, choice
from routes.predicate import parse
from routes.predicate.doubts import unknown_fields
from routes.predicate.nodes import In, walk
from routes.properties import SEED_NAMES
from routes.systems import Addresses, NetworkConfig, ServerTraits, SinkConfig, SourceConfig, backup_urls, subscription

if TYPE_CHECKING:
    from collections.abc import Iterator

    from routes.keys.entry import Entry
    from routes.keys.settings import Settings
    from routes.predicate import Predicate

__all__ = [
    "MOST_IN_DOUBT",
    "MOST_IN_FLIGHT",
    "Identity",
    "JmsConfig",
    "JmsConnector",
    "JmsSinkConfig",
    "JmsSourceConfig",
    "check_subscription",
    "client_id_of",
    "identity",
    "jms_addresses",
    "selector",
]

MOST_IN_FLIGHT = 4_000
"""Messages that a sink sends ahead of their confirmations to a broker that drops duplicates."""
MOST_IN_DOUBT = 1_000
"""`MOST_IN_FLIGHT` for a broker that drops no duplicates: so many may be there twice after a crash."""
ANY = "*"
"""Destination of a listener that stands for all: clients may send anywhere."""
_PATTERN = r"/?(?:queue|topic)[/:](?!//)[^\x00-\x1f\x7f]{1,500}"
_INTERNAL = (
    # RabbitMQ 4 takes orders at an address of this name; behind one slash it is a queue like any.
    r"/?(?:queue|topic)[/:](?:/management$|"
    # A name may have another one behind a comma (lists of ActiveMQ Classic), a colon or a slash (prefixes of kinds).
    r"(?:.*[,/: ])?(?:jms\.(?:queue|topic)\.)?"
    # Artemis, with `$sys.` and `$.artemis.internal`; `$management` of AMQP brokers; ActiveMQ Classic.
    r"(?:activemq\.(?:management|notifications)|\$|ActiveMQ\.Advisory|"
    # `amq.` at RabbitMQ, whose addresses may be quoted as in URLs.
    r"(?:a|%61)(?:m|%6[Dd])(?:q|%71)(?:\.|%2[Ee])))"
)
_RABBITMQ_CLIENT = "com.rabbitmq.jms."
"""Package of RabbitMQ's own JMS client."""
_QUOTED = re.compile(r"'(?:[^']|'')*'?|\"[^\"]*\"?")
_OWN = re.compile(
    r"(?<![\w$.])(?:msg\.(?:address\b|(?P<body>body|text)\b|header\.(?P<header>[\w$]*))|(?P<xpath>xpath)(?=\s*\())"
    r"|(?P<sign>==|!=|&&|\|\||!)"
)
_INSTEAD: Mapping[str, str] = {
    "==": "write =, with a text in single quotes: region = 'emea'",
    "!=": "write <>",
    "&&": "write AND",
    "||": "write OR",
    "!": "write NOT",
}
_DIALECT = re.compile(
    r"\s*(?:no_)?(?:hyphenated_props|convert_string_expressions):|\b(?:XPATH|XQUERY)\b|--|/\*|%", re.IGNORECASE
)
"""Syntax that Artemis knows beyond JMS."""
_AMQP = re.compile(r"(?<![\w$.])amqp\.(?=\w)")
"""Names of AMQP fields as Qpid spells them, which an AMQP source translates."""


def _parse_selector(text: str) -> str:
    """Returns the selector unchanged; raises BadValueError if no broker could read it."""
    if not text.strip():
        raise BadValueError("the selector is empty", "remove the line to receive every message")
    if match := _OWN.search(_without_quoted(text)):
        raise BadValueError(f"the broker reads this, and JMS has no {match[0]}", _advice(match), match.start())
    if _DIALECT.search(_without_quoted(text)):
        return text
    try:
        predicate = _read(text)
    except PredicateSyntaxError as error:
        raise BadValueError(error.fault.message, _hint(error.fault), error.fault.column - 1) from error
    except PredicateError:
        # Brokers differ in what else they refuse.
        return text
    for number in (number for node in walk(predicate.root) if isinstance(node, In) for number in node.numbers):
        hint = "join comparisons with OR, or use BETWEEN"
        raise BadValueError("IN takes texts, not numbers, in a selector", hint, number.position)
    return text


def _parse_queue(text: str) -> str:
    """Returns the name of a queue; raises BadValueError for a destination."""
    if plain := plainly(text):
        raise BadValueError(f"'{text}' is not the name of a queue", f"write {plain.partition(':')[2]}")
    return str(TEXT.parse(text))


class Identity(StrEnum):
    """Sign by which a message that the broker delivers again is recognised."""

    MESSAGE_ID = "message-id"
    CONTENT = "content"


@dataclass(frozen=True, kw_only=True)
class JmsConfig(NetworkConfig):
    """Settings of a connection to a JMS broker."""

    backup_urls: tuple[str, ...] = backup_urls()
    """URLs of the broker's backups."""
    virtual_host: str | None = key(
        "virtual-host",
        TEXT,
        "The virtual host of the broker. STOMP: the header `host` of CONNECT; AMQP: `hostname` of open. RabbitMQ "
        "wants `/` over STOMP and `vhost:/` over AMQP.",
        default_note="the host of `url`",
        example="/",
    )
    """Name of the broker's virtual host; None: the one named like the host of the URL."""
    broker: Product | None = key(
        "broker",
        PRODUCT,
        "Product of the broker, for a broker that does not name it, or behind a proxy that hides it. The bridge "
        "adapts to the peculiarities of the product.",
        default_note="the name that the broker gives on connecting",
        example="openmq",
    )
    """Product of the broker, whatever it says of itself; None: the one that it says."""


def selector() -> Any:
    """Declares the key `selector` of sources."""
    return key(
        "selector",
        ValueKind("JMS selector", "a JMS selector", _parse_selector),
        "JMS selector that the broker applies, so that other messages never reach the bridge. It has the spelling of "
        "JMS alone: `=` and `<>`, texts in single quotes, no `msg.`.",
        example="region = 'emea'",
    )


def identity() -> Any:
    """Declares the key `identity` of sources."""
    return key(
        "identity",
        choice(Identity),
        "Mark by which a message that the broker delivers again is recognised: its `message-id`, or the `content` "
        "for messages without one (plain STOMP senders at RabbitMQ, senders of AMQP messages without message-id). "
        "Set `content` only if no two messages are equal in body and all headers: of two equal ones, one may be left "
        "out.",
        default="message-id",
    )


@dataclass(frozen=True, kw_only=True)
class JmsSourceConfig(JmsConfig, SourceConfig):
    """Settings of a source at a JMS broker; destinations are `queue:NAME` or `topic:NAME`."""

    selector: str | None = selector()
    """JMS selector that the broker applies."""
    subscription: str | None = subscription()
    """Name of the durable subscription on topics; None: not durable."""
    identity: Identity = identity()


@dataclass(frozen=True, kw_only=True)
class JmsSinkConfig(SinkConfig):
    """Settings of a sink at a JMS broker, besides those of its connection."""

    position_queue: str | None = key(
        "position-queue",
        ValueKind("text", "the name of a queue", _parse_queue),
        "Queue at the broker in which the sink keeps its position. Each transaction moves that position with its "
        "messages, so none is sent twice. Nothing else may read the queue; several sinks may share it.",
        default_note="none: messages may be sent twice after a crash, where the broker drops no duplicates",
        example="jms-bridge.positions",
    )
    accepts_duplicates: bool = key(
        "accept-duplicates",
        FLAG,
        "`true`: receivers can take a message twice, so `validate` and `doctor` do not warn that it may come twice "
        "after a crash. It has the same JMSMessageID then.",
        default="false",
    )


class JmsConnector(Connector[BrokerT, SourceT, SinkT]):
    """A system that is a JMS broker."""

    is_jms = True
    server = ServerTraits("artemis", "Artemis", ("embedded.artemis.port", "embedded.stomp.port", "embedded.amqp.port"))

    def check(self, settings: Settings, section: str, name: str) -> None:
        """Checks destinations, subscription and selector of a source, and what a sink does after a crash."""
        if section == "source":
            _check_destinations(settings, name)
            check_subscription(settings, name)
            _check_selector(settings, name)
        else:
            _check_duplicates(settings, name)

    def examples(self, source: SourceT) -> Iterator[tuple[str, str]]:
        """See `Connector`; a destination of a JMS broker needs no scheme."""
        for destination in source.destinations:
            yield destination, destination

    def keeps(self, address: str) -> bool:
        """See `Connector`."""
        return address.startswith("queue")


def jms_addresses(scheme: str) -> Addresses:
    """Returns the addresses of a JMS broker; `scheme` is for the example."""
    return Addresses(_PATTERN, f"queue/NAME or topic/NAME, as in {scheme}:queue/orders", _INTERNAL)


def _check_duplicates(settings: Settings, name: str) -> None:
    """Warns of a sink at RabbitMQ, which neither drops duplicates nor keeps positions."""
    for part in ("broker", "connection-factory"):
        entry, value = settings.entry(f"sink.NAME.{part}", name), settings.get(f"sink.NAME.{part}", name)
        is_rabbitmq = value == RABBITMQ or str(value).startswith(_RABBITMQ_CLIENT)
        if entry is not None and is_rabbitmq and not settings.get("sink.NAME.accept-duplicates", name):
            message = f"messages may come twice after a crash: {RABBITMQ.title} drops no duplicates"
            hint = f"set sink.{name}.accept-duplicates=true where receivers can take a message twice"
            settings.faults.append(entry.fault(message, hint, level=Level.WARNING))


def _check_destinations(settings: Settings, name: str) -> None:
    """Adds faults of destinations that are neither queues nor topics."""
    entry = settings.entry("source.NAME.destinations", name)
    for destination in settings.get("source.NAME.destinations", name) or ():
        is_any = destination == ANY and settings.is_set("source.NAME.listen", name)
        if entry is not None and not is_any and not re.fullmatch(r"(?:queue|topic):\s*\S.*", destination):
            meant = destination.rpartition(":")[2].strip() or "orders"
            message, hint = f"'{destination}' is not a destination", f"write queue:{meant} or topic:{meant}"
            settings.faults.append(entry.fault(message, hint, max(entry.value.find(destination), 0)))


def client_id_of(name: str, worker: int) -> str:
    """Returns the client id of a worker's connection: `name` for worker 1, which has the durable subscriptions.

    Brokers refuse a second connection with the client id of one that is open.
    """
    return name if worker == 1 else f"{name}.{worker}"


def check_subscription(settings: Settings, name: str) -> None:
    """Adds a fault if a durable subscription is one of no topic."""
    listed = settings.get("source.NAME.destinations", name)
    if listed is None or not settings.is_set("source.NAME.subscription", name):
        return
    if not any(destination.startswith("topic:") for destination in listed):
        hint = f"source.{name}.destinations has queues only, which keep their messages anyway"
        settings.fault("source.NAME.subscription", name, "a durable subscription of no topic", hint)


def _check_selector(settings: Settings, name: str) -> None:
    """Warns of a selector that is not JMS, and that the broker may refuse."""
    entry, selector = settings.entry("source.NAME.selector", name), settings.get("source.NAME.selector", name)
    if entry is None or selector is None:
        return
    if (error := _refused(selector)) is None:
        _unknown_fields(settings, entry, selector)
        return
    if entry.secret:
        fault = Fault("the broker may refuse this selector", level=Level.WARNING)
    else:
        message = f"the broker may refuse this selector: {error.fault.message}"
        fault = Fault(message, _hint(error.fault), level=Level.WARNING)
    settings.faults.append(entry.move(fault, 0 if entry.secret else error.fault.column - 1))


def _unknown_fields(settings: Settings, entry: Entry, selector: str) -> None:
    if not entry.secret:
        for doubt in unknown_fields(_read(selector)):
            settings.faults.append(entry.fault(doubt.message, doubt.hint, doubt.node.position, Level.WARNING))


def _refused(text: str) -> PredicateError | None:
    try:
        _read(text)
    except PredicateError as error:
        return error
    return None


def _read(text: str) -> Predicate:
    """Returns a selector as a predicate, with names of AMQP fields as names of properties."""
    return parse(_AMQP.sub("amqp_", text))


def _without_quoted(text: str) -> str:
    """Returns the text, of the same length, with all that stands in quotes blotted out."""
    return _QUOTED.sub(lambda quoted: "x" * len(quoted[0]), text)


def _advice(match: re.Match[str]) -> str:
    if match["sign"]:
        return _INSTEAD[match["sign"]]
    if match["body"] or match["xpath"]:
        return "a route's in.include can ask for what is in the body"
    if match["header"]:
        return f"write {SEED_NAMES.get(match['header'], match['header'])}"
    return "source.NAME.destinations says which queues and topics; a route's in.include can ask for the address"


def _hint(fault: Fault) -> str:
    """Returns the hint, if it advises nothing that only predicates have."""
    return fault.hint if "msg." not in fault.hint and "==" not in fault.hint else "as in region = 'emea' AND amount > 5"
