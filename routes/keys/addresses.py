"""Kinds of values that are addresses: of brokers, of Kafka topics, and of the destinations of sources and sinks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from ipaddress import AddressValueError, IPv6Address, ip_address
from typing import TYPE_CHECKING, NamedTuple

from routes.keys.language import parse_header, parse_reference
from routes.keys.values import BadValueError, ValueKind, one_of, parse_text
from routes.predicate.nodes import ADDRESS, PATHS
from routes.targets import KAFKA_TOPIC, Reference, Template
from routes.targets import TOPIC as TOPIC_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "DESTINATIONS",
    "ENDPOINT",
    "FROM",
    "HOST_PORT",
    "HOST_PORTS",
    "KAFKA",
    "PEERS",
    "REPLY_TO",
    "TARGETS",
    "TOPIC",
    "TRACE_ID",
    "TRACE_LINK",
    "Destination",
    "Peer",
    "host_of",
    "is_loopback",
    "is_unspecified",
    "parse_template",
    "plainly",
    "url",
    "urls",
]

KAFKA = "kafka"
"""The scheme of destinations that are Kafka topics; usually left out."""

TRACE_ID = "{trace-id}"
"""Placeholder in the URL of a trace."""

_KIND = re.compile("(?:queue|topic):")
_OPENWIRE = re.compile(r"(?:temp-)?(queue|topic)://+(.*)", re.DOTALL)
"""A destination as clients of ActiveMQ write it."""
_CLIENT_URL = re.compile(r"(?:tcp|ssl|nio|nio\+ssl|auto|auto\+ssl|failover|discovery|fanout|static|vm|peer):")
"""Beginning of a URL as JMS clients of ActiveMQ and Artemis take it."""
_HOST = re.compile(r"\[([0-9A-Fa-f:.%]+)\]|[A-Za-z0-9._-]+")
_REFERENCE = re.compile(r"\$\{([^}]*)(\}?)")
_PARTS = re.compile(r"(?:^|(?<=,))(?:\$\{[^}]*\}?|[^,])*")
"""Texts between commas, each of which may be empty."""


@dataclass(frozen=True, slots=True)
class Destination:
    """`scheme:address` as a route names it; only the whole configuration tells which sink is meant."""

    scheme: str
    """`kafka`, or the name or type of a sink."""
    address: Template
    offset: int = field(default=0, compare=False)
    """Place of the destination in the value of its key."""


class Peer(NamedTuple):
    """The address of another host of a bridge."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def host_of(authority: str) -> str | None:
    """Returns the host of `name` or `name:port` in lower case, an IPv6 address without its brackets (RFC 3986, 3.2.2).

    None for any other text: a user name, a path or a fragment would let one program read another host than the next.
    """
    host, colon, port = authority.rpartition(":")
    if not colon or port.endswith("]"):
        host = authority
    elif not re.fullmatch("[0-9]{0,5}", port):
        return None
    return host.strip("[]").lower() if _is_host(host) and "%" not in host else None


def is_loopback(host: str) -> bool:
    """Returns True if only this machine can reach the host. A name other than `localhost` may lead anywhere."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_unspecified(host: str) -> bool:
    """Returns True if a host stands for all addresses of the machine."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def url(ports: Mapping[str, int]) -> ValueKind:
    """Makes the kind of a broker's address: scheme, host and port only; `ports` has the default port of each scheme."""
    schemes = tuple(ports)
    listed = one_of([f"{scheme}://host:port" for scheme in schemes])

    def parse(text: str) -> str:
        scheme, separator, rest = text.partition("://")
        if _CLIENT_URL.match(text) and scheme not in schemes:
            raise BadValueError(*_client_url(text))
        if not separator or scheme not in schemes:
            near = get_close_matches(scheme, schemes, n=1)
            raise BadValueError(
                f"'{_without_login(text)}' is not {listed}", f"did you mean {near[0]}://?" if near else ""
            )
        offset = len(scheme) + 3
        if "@" in rest:
            hint = "set username and password of the source or sink instead"
            raise BadValueError("a URL holds no user name and no password", hint, secret=True)
        if rest.rstrip("/") != rest.split("/")[0] or "?" in rest or "#" in rest:
            raise BadValueError(f"'{text}' has more than a host and a port", f"expected {listed}", offset)
        host_port = rest.rstrip("/")
        if host_port and ":" not in host_port.rpartition("]")[2]:
            host_port += f":{ports[scheme]}"
        _split_host_port(host_port, offset)
        return f"{scheme}://{host_port}"

    return ValueKind("URL", listed, parse)


def urls(ports: Mapping[str, int]) -> ValueKind:
    """Makes the kind of several addresses of that kind, with commas between them."""
    one = url(ports)

    def parse(text: str) -> tuple[str, ...]:
        found: list[str] = []
        for match in _PARTS.finditer(text):
            address = match[0].strip()
            start = match.start() + len(match[0]) - len(match[0].lstrip())
            try:
                found.append(one.parse(address))
            except BadValueError as error:
                raise BadValueError(str(error), error.hint, start + error.offset, secret=error.secret) from None
            if found[-1] in found[:-1]:
                raise BadValueError(f"'{address}' is listed twice", "name each address once", start)
        return tuple(found)

    return ValueKind("URLs", f"{one.expected}, with commas between them", parse)


def _client_url(text: str) -> tuple[str, str]:
    """Returns message and hint for the URL of a JMS client."""
    # Behind the question mark such a URL may hold a password.
    shown = _without_login(text.partition("?")[0])
    match = re.search(r"//([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?=[:/,?)]|$)", shown)
    host = match[1] if match else "host"
    return (
        f"'{shown}' is the URL of a JMS client (OpenWire or Artemis)",
        f"with type=jms it is connection-factory.brokerURL={shown}; "
        f"type=stomp wants stomp://{host}:61613, type=amqp amqp://{host}:5672",
    )


def plainly(text: str) -> str | None:
    """Returns a destination that is spelt `queue://NAME` as `queue:NAME`; None if it is spelt otherwise."""
    match = _OPENWIRE.fullmatch(text)
    return f"{match[1]}:{match[2]}" if match else None


def _parse_endpoint(text: str) -> str:
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in ("http", "https"):
        raise BadValueError(f"'{_without_login(text)}' is not http://host:port or https://host:port")
    if "@" in rest or "?" in rest or "#" in rest:
        hint = "a header for the login can be in the environment: OTEL_EXPORTER_OTLP_HEADERS"
        raise BadValueError("this URL holds a host, a port and a path, and nothing else", hint, secret=True)
    host_port, _, path = rest.partition("/")
    _split_host_port(host_port, len(scheme) + 3)
    if not re.fullmatch(r"[A-Za-z0-9._~/%-]*", path):
        raise BadValueError(f"'{text}' has a path that no URL can have")
    return f"{scheme}://{host_port}/{path or 'v1/traces'}"


def _parse_trace_link(text: str) -> str:
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in ("http", "https"):
        raise BadValueError(f"'{_without_login(text)}' is not a URL of http or https")
    matched = re.fullmatch(r"([^/?#]+)([/?#].*)", rest)
    if not matched or TRACE_ID not in matched[2]:
        hint = f"such as https://jaeger.example/trace/{TRACE_ID}"
        raise BadValueError(f"this URL lacks {TRACE_ID} behind its host", hint, secret=True)
    if "@" in matched[1]:
        raise BadValueError("a URL holds no user name and no password", secret=True)
    if not re.fullmatch(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?", matched[1]):
        raise BadValueError(f"'{matched[1]}' is not a host, or a host and a port")
    wrong = re.search(r"[^A-Za-z0-9._~:/?#@!$&()*+,;=%'\[\]-]", matched[2].replace(TRACE_ID, ""))
    if wrong:
        raise BadValueError(f"this URL has a character {wrong[0]!r}", "write it as %XX, as URLs need it", secret=True)
    return text


def _parse_registry_urls(text: str) -> tuple[str, ...]:
    """Parses URLs between commas; each may have a path, such as the one at which Apicurio speaks like Confluent's."""
    urls = []
    offset = 0
    for part in text.split(","):
        start = offset + len(part) - len(part.lstrip())
        offset += len(part) + 1
        address = part.strip()
        if "@" in address:
            hint = "set schema.registry.username and schema.registry.password instead"
            raise BadValueError("a URL holds no user name and no password", hint, secret=True)
        matched = re.fullmatch(r"(https?)://([^/]+)((?:/[A-Za-z0-9._~%-]+)*)/?", address)
        if not matched:
            raise BadValueError(
                f"'{address}' is not http://host:port or https://host:port, with a path or none", "", start
            )
        _split_host_port(matched[2], start + matched.start(2))
        urls.append(f"{matched[1]}://{matched[2]}{matched[3]}")
    return tuple(urls)


def _parse_topic(text: str) -> str:
    parse_text(text)
    hint = "letters, digits, '.', '_' and '-', 249 at most"
    if text in (".", ".."):
        raise BadValueError(f"'{text}' is not a valid Kafka topic name", hint)
    if not TOPIC_NAME.fullmatch(text):
        offset = len(re.match(r"[A-Za-z0-9._-]*", text)[0])  # type: ignore[index]
        raise BadValueError(f"'{text}' is not a valid Kafka topic name", hint, min(offset, len(text) - 1))
    return text


def _parse_targets(text: str) -> tuple[Destination, ...]:
    """Parses destinations between commas; a comma in a reference to the message separates none."""
    parse_text(text)
    destinations: list[Destination] = []
    offset = 0
    for part in _PARTS.findall(text):
        start = offset + len(part) - len(part.lstrip())
        offset += len(part) + 1
        if not part.strip():
            raise BadValueError("a destination is missing between commas", "as in orders, nats:orders.eu", start)
        try:
            destination = _parse_target(part.strip())
        except BadValueError as error:
            raise BadValueError(str(error), error.hint, error.offset + start) from None
        if destination in destinations:
            raise BadValueError(f"'{part.strip()}' is listed twice", "name each destination once", start)
        destinations.append(replace(destination, offset=start))
    return tuple(destinations)


def _parse_target(text: str) -> Destination:
    parse_text(text)
    scheme, separator, rest = text.partition(":") if re.match(r"[A-Za-z0-9_-]+:", text) else (KAFKA, "", text)
    offset = len(scheme) + 1 if separator else 0
    if plain := plainly(text):
        spelt = plain.replace(":", "/", 1)
        raise BadValueError(f"'{text}' names no sink", f"write SINK:{spelt}, as in stomp:{spelt}")
    if plain := plainly(rest):
        spelt = plain.partition(":")[2] if scheme in ("nats", KAFKA) else plain.replace(":", "/", 1)
        raise BadValueError(f"'{rest}' has a // that is not part of an address", f"write {scheme}:{spelt}", offset)
    if not rest:
        raise BadValueError(f"'{text}' names no destination", "as in kafka:orders, nats:orders.eu, stomp:queue/orders")
    try:
        target = parse_template(rest)
        if scheme == KAFKA and not target.references:
            _parse_topic(rest)
    except BadValueError as error:
        raise BadValueError(str(error), error.hint, error.offset + offset) from None
    return Destination(scheme, target)


def _parse_from(text: str) -> Template:
    """Parses the address that messages of a topic get: a topic, unless it begins with `queue:`."""
    parse_text(text)
    kind = _KIND.match(text)
    if plain := plainly(text):
        raise BadValueError(f"'{text}' has a // that is not part of an address", f"write {plain}")
    if kind and kind.end() == len(text):
        raise BadValueError(f"'{text}' has no name", "as in topic:kafka.${topic}")
    offset = 0 if kind else len("topic:")
    try:
        return parse_template(text if kind else f"topic:{text}", {"topic": KAFKA_TOPIC}, "msg.header.")
    except BadValueError as error:
        raise BadValueError(str(error), "as in kafka.${topic}", max(error.offset - offset, 0)) from None


_ADDRESS_ALONE = {ADDRESS: ADDRESS}


def parse_template(text: str, names: Mapping[str, str] = _ADDRESS_ALONE, header: str = "") -> Template:
    """Parses a text with references to one of `names`, or to `msg.header.NAME` spelt with the prefix `header`."""
    parts: list[str | Reference] = []
    end = 0
    for reference in _REFERENCE.finditer(text):
        parts += [text[end : reference.start()]] if reference.start() > end else []
        end = reference.end()
        if not reference[2]:
            raise BadValueError("'${' without its '}'", "as in orders.${msg.header.region}", reference.start())
        try:
            if reference[1] not in names and not reference[1].startswith(header):
                listed = one_of([f"${{{name}}}" for name in (*names, "msg.header.NAME")])
                raise BadValueError(f"'{reference[0]}' is not {listed}")
            read = parse_header if header else parse_reference
            parts.append(Reference(names[reference[1]] if reference[1] in names else read(reference[1])))
        except BadValueError as error:
            hint = error.hint if reference[1].startswith(PATHS) else "as in ${msg.header.region}"
            raise BadValueError(str(error), hint, reference.start(1)) from None
    return Template((*parts, text[end:]) if end < len(text) else tuple(parts))


def _parse_list(text: str) -> tuple[str, ...]:
    """Parses parts between commas. The type of the source decides on the form of each part (`checks`)."""
    parse_text(text)
    destinations: list[str] = []
    offset = 0
    for part in text.split(","):
        start = offset + len(part) - len(part.lstrip())
        offset += len(part) + 1
        destination = part.strip()
        if not destination:
            raise BadValueError("a destination is missing between commas", "as in queue:orders, topic:prices", start)
        if plain := plainly(destination):
            hint = f"write {plain}; for NATS and Kafka the name alone"
            raise BadValueError(f"'{destination}' has a // that is not part of a destination", hint, start)
        if destination in destinations:
            raise BadValueError(f"'{destination}' is listed twice", "name each destination once", start)
        destinations.append(destination)
    return tuple(destinations)


def _parse_reply_to(text: str) -> str:
    if plain := plainly(parse_text(text)):
        raise BadValueError(f"'{text}' has a // that is not part of a destination", f"write {plain}")
    return text


def _parse_host_ports(text: str) -> str:
    if "@" in text:
        raise BadValueError("an address holds no user name and no password", "as in 127.0.0.1:9092", secret=True)
    offset = 0
    for part in text.split(","):
        _split_host_port(part.strip(), offset + len(part) - len(part.lstrip()))
        offset += len(part) + 1
    return ",".join(part.strip() for part in text.split(","))


def _parse_peers(text: str) -> tuple[Peer, ...]:
    if "@" in text:
        hint = "peers get the login of this file: http.token, or http.username and http.password"
        raise BadValueError("an address holds no user name and no password", hint, secret=True)
    peers: list[Peer] = []
    offset = 0
    for part in text.split(","):
        start = offset + len(part) - len(part.lstrip())
        offset += len(part) + 1
        peer = Peer(*_split_host_port(part.strip(), start))
        if is_unspecified(peer.host):
            hint = "name a host, as in edge-1.example:8480"
            raise BadValueError(f"'{peer.host}' stands for every address of a machine", hint, start)
        if peer in peers:
            raise BadValueError(f"'{peer}' is listed twice", "name each host once", start)
        peers.append(peer)
    return tuple(peers)


def _split_host_port(text: str, offset: int = 0, lowest: int = 1) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host:
        raise BadValueError(f"'{_without_login(text)}' is not a host and a port", "as in 127.0.0.1:9092", offset)
    if not _is_host(host):
        raise BadValueError(
            f"'{_without_login(host)}' is not a host name", "an IPv6 address goes in brackets: [::1]:9092", offset
        )
    if not re.fullmatch(r"[0-9]{1,5}", port) or not lowest <= int(port) < 65536:
        raise BadValueError(f"'{port}' is not a port", f"a number from {lowest} to 65535", offset + len(host) + 1)
    return host.strip("[]"), int(port)


def _is_host(text: str) -> bool:
    """True for a name or an IPv4 address, or an IPv6 address in brackets."""
    match = _HOST.fullmatch(text)
    try:
        if match and match[1]:
            IPv6Address(match[1])
    except AddressValueError:
        return False
    return match is not None


def _without_login(text: str) -> str:
    return re.sub(r"(://|^)[^/]*@", r"\1…@", text)


DESTINATIONS = ValueKind("list of destinations", "destinations such as queue:orders, topic:prices", _parse_list)
FROM = ValueKind("template", "an address, as in kafka.${topic}", _parse_from)
ENDPOINT = ValueKind("URL", "http://host:port or https://host:port", _parse_endpoint)
HOST_PORT = ValueKind("host:port", "a host and a port", lambda text: _split_host_port(text, lowest=0))
HOST_PORTS = ValueKind("list of host:port", "one host:port or several, separated by commas", _parse_host_ports)
PEERS = ValueKind("list of host:port", "one host:port or several, separated by commas", _parse_peers)
REGISTRY_URLS = ValueKind("list of URLs", "one http://host:port or several, separated by commas", _parse_registry_urls)
REPLY_TO = ValueKind("destination", "a destination, as in queue:replies, or a subject", _parse_reply_to)
TARGETS = ValueKind(
    "list of destinations", "destinations such as kafka:orders, nats:orders.eu, stomp:queue/orders", _parse_targets
)
TRACE_LINK = ValueKind("URL", f"a URL of http or https with {TRACE_ID}", _parse_trace_link)
TOPIC = ValueKind("topic", "a Kafka topic name", _parse_topic)
