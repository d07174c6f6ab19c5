"""Kinds of values that say who may log in to the pages, and by what: groups, issuers of tokens, proxies."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network, ip_network

from routes.keys.addresses import host_of, is_loopback
from routes.keys.values import BadValueError, ValueKind, parse_text

__all__ = ["HEADER", "ISSUER", "NAMES", "NETWORKS", "PUBLIC_URL", "Network"]

Network = IPv4Network | IPv6Network
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_BETWEEN_COMMAS = re.compile(rf"(?:^|(?<=,))(\s*(?:{_QUOTED.pattern}[^,]*|[^,]*))")
_LOGIN_HINT = "set client.id and client.secret instead"


def _parts(text: str) -> list[tuple[int, str]]:
    """The parts between commas that are not within double quotes, each with its place."""
    parse_text(text)
    found, offset = [], 0
    for part in _BETWEEN_COMMAS.findall(text):
        found.append((offset + len(part) - len(part.lstrip()), part.strip()))
        offset += len(part) + 1
    return found


def _unquoted(part: str, start: int) -> str:
    """The name in a part, which may be in double quotes; two of them stand for one in it."""
    if not part.startswith('"'):
        return part
    if not _QUOTED.fullmatch(part):
        hint = 'as in "CN=ops,OU=it", support; a double quote in a name is written twice'
        raise BadValueError(f"{part} is not a name in double quotes", hint, start)
    return part[1:-1].replace('""', '"')


def _parse_names(text: str) -> tuple[str, ...]:
    names: list[str] = []
    for start, part in _parts(text):
        name = _unquoted(part, start)
        if not name:
            raise BadValueError("a name is missing between commas", "as in bridge-operators, /it/middleware", start)
        if name in names:
            raise BadValueError(f"'{name}' is listed twice", "name each once", start)
        names.append(name)
    return tuple(names)


def _parse_networks(text: str) -> tuple[Network, ...]:
    networks: list[Network] = []
    for start, part in _parts(text):
        try:
            network = ip_network(part)
        except ValueError:
            hint = "as in 10.1.2.3, 10.1.0.0/16 or fd00:1::/64"
            raise BadValueError(f"'{part}' is not an address or a network", hint, start) from None
        if network.prefixlen == 0:
            raise BadValueError(f"'{part}' has every address", "name those of the proxy", start)
        networks.append(network)
    return tuple(networks)


def _parse_header(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^`|~-]{1,100}", text):
        raise BadValueError(f"'{text}' is not the name of an HTTP header", "as in X-Forwarded-User")
    return text.lower()


def _parse_issuer(text: str) -> str:
    scheme, authority, rest = _split(text)
    if "?" in rest or "#" in rest or not re.fullmatch(r"[A-Za-z0-9._~!$&'()*+,;=:@%/-]*", rest):
        raise BadValueError(f"'{text}' is not the URL of an issuer", "as in https://login.example.com/realms/staff")
    _check_scheme(text, scheme, authority)
    return text


def _parse_public_url(text: str) -> str:
    scheme, authority, rest = _split(text.rstrip("/"))
    if rest:
        raise BadValueError(f"'{text}' has more than a scheme, a host and a port", "the pages have no prefix")
    return f"{scheme}://{authority.lower()}"


def _split(text: str) -> tuple[str, str, str]:
    """Scheme, host with port, and the rest of a URL of http or https."""
    parse_text(text)
    if re.match("[^/]*//[^/]*@", text):
        raise BadValueError("a URL holds no user name and no password", _LOGIN_HINT, secret=True)
    matched = re.fullmatch(r"(https?)://([^/?#]+)(.*)", text)
    if matched is None or host_of(matched[2]) is None:
        raise BadValueError(f"'{text}' is not https://host or https://host:port")
    return matched[1], matched[2], matched[3]


def _check_scheme(text: str, scheme: str, authority: str) -> None:
    if scheme != "https" and not is_loopback(host_of(authority) or ""):
        hint = "tokens of an issuer without TLS could be anybody's; http is for loopback addresses"
        raise BadValueError(f"'{text}' is not https", hint)


HEADER = ValueKind("header", "the name of an HTTP header", _parse_header)
"""An HTTP header, in lower case. Names with `_` are not taken, since servers mix them up with those with `-`."""
ISSUER = ValueKind("URL", "https://host, with a path or none", _parse_issuer)
NAMES = ValueKind("list of names", "names separated by commas", _parse_names)
"""Names in the order of the file. One with a comma in it is written in double quotes, as names of headers are."""
NETWORKS = ValueKind("list of networks", "addresses and networks such as 10.1.0.0/16", _parse_networks)
PUBLIC_URL = ValueKind("URL", "https://host or https://host:port", _parse_public_url)
