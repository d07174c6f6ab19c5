"""Reads and writes `sasl.jaas.config`, the Java clients' form of user name and password."""

from __future__ import annotations

import re
from dataclasses import dataclass

from routes.keys.values import BadValueError

__all__ = ["Login", "read_jaas", "write_jaas"]

_OPTION = re.compile(
    r"""(?P<name>\w+)\s*=\s*(?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'|(?P<bare>[^\s;"']+))"""
)
_MODULES = {"PlainLoginModule": "plain.PlainLoginModule", "ScramLoginModule": "scram.ScramLoginModule"}


@dataclass(frozen=True, slots=True)
class Login:
    """A user name and password, with the one of Kafka's login modules that takes them."""

    module: str
    username: str
    password: str

    def __repr__(self) -> str:
        return f"Login({self.module})"


def read_jaas(text: str) -> Login:
    """Reads the login in `org.apache.kafka.common.security.….XLoginModule required username="…" password="…";`.

    Raises:
        BadValueError: the text holds no such login; the error never quotes the text.
    """
    match = re.fullmatch(r"\s*([\w.]+)\s+(?:required|requisite|sufficient|optional)\s+(.*?)\s*;\s*", text, re.DOTALL)
    if match is None:
        raise BadValueError("the value is not a JAAS configuration", _example("PlainLoginModule"))
    module = match[1].rpartition(".")[2]
    if module not in _MODULES:
        raise BadValueError(f"the login module '{module}' is not supported", "PlainLoginModule or ScramLoginModule")
    options = {option["name"]: _text(option) for option in _OPTION.finditer(match[2])}
    if "username" not in options or "password" not in options:
        raise BadValueError("the JAAS configuration names no username and password", _example(module))
    return Login(module, options["username"], options["password"])


def write_jaas(mechanism: str, username: str, password: str) -> str:
    """Returns the JAAS configuration of a login by SASL/PLAIN or SASL/SCRAM."""
    module = "PlainLoginModule" if mechanism == "PLAIN" else "ScramLoginModule"
    options = f"username={_quoted(username)} password={_quoted(password)}"
    return f"org.apache.kafka.common.security.{_MODULES[module]} required {options};"


def _text(option: re.Match[str]) -> str:
    if option["bare"] is not None:
        return option["bare"]
    quoted = option["double"] if option["double"] is not None else option["single"]
    return re.sub(r"\\(.)", r"\1", quoted)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _example(module: str) -> str:
    return f'as in org.apache.kafka.common.security.{_MODULES[module]} required username="u" password="p";'
