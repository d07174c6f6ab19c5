"""Login and certificates of Kafka's clients, in Java's spelling and in librdkafka's.

Java's client has user name and password in one text, `sasl.jaas.config`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from routes.keys.secrets import Secret
from routes.keys.values import BadValueError

__all__ = [
    "Login",
    "java_certificates",
    "java_login",
    "librdkafka_certificates",
    "librdkafka_login",
    "read_jaas",
    "store_type",
    "write_jaas",
]

_OPTION = re.compile(
    r"""(?P<name>\w+)\s*=\s*(?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'|(?P<bare>[^\s;"']+))"""
)
_MODULES = {"PlainLoginModule": "plain.PlainLoginModule", "ScramLoginModule": "scram.ScramLoginModule"}
_SUFFIXES = {".pem": "PEM", ".crt": "PEM", ".cer": "PEM", ".p12": "PKCS12", ".pfx": "PKCS12", ".jks": "JKS"}


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


def store_type(location: str, declared: str | None) -> str | None:
    """Returns the type of a key or trust store: as declared, else by its file name; None if neither tells."""
    if declared:
        return declared.upper()
    return next((kind for suffix, kind in _SUFFIXES.items() if location.lower().endswith(suffix)), None)


def librdkafka_login(given: Mapping[str, str]) -> dict[str, str]:
    """Librdkafka's settings of the login among settings that are `given` under Java's names."""
    if "sasl.jaas.config" in given:
        login = read_jaas(given["sasl.jaas.config"])
        return {"sasl.username": login.username, "sasl.password": Secret(login.password)}
    return {name: given[name] for name in ("sasl.username", "sasl.password") if name in given}


def java_login(given: Mapping[str, str]) -> dict[str, str]:
    """Java's settings of a login that is `given` in librdkafka's spelling; empty for another."""
    if "sasl.jaas.config" in given or "sasl.username" not in given:
        return {}
    mechanism = given.get("sasl.mechanism", "PLAIN")
    return {"sasl.jaas.config": Secret(write_jaas(mechanism, given["sasl.username"], given["sasl.password"]))}


def librdkafka_certificates(given: Mapping[str, str]) -> dict[str, str]:
    """Librdkafka's settings of the certificates among settings that are `given` under Java's names."""
    settings: dict[str, str] = {}
    if trusted := given.get("ssl.ca.location") or given.get("ssl.truststore.location"):
        settings["ssl.ca.location"] = trusted
    if store := given.get("ssl.keystore.location"):
        if store_type(store, given.get("ssl.keystore.type")) == "PEM":
            settings |= {"ssl.certificate.location": store, "ssl.key.location": store}
        else:
            settings |= {"ssl.keystore.location": store, "ssl.keystore.password": given["ssl.keystore.password"]}
    settings |= {name: given[name] for name in ("ssl.certificate.location", "ssl.key.location") if name in given}
    if "ssl.endpoint.identification.algorithm" in given:
        settings["ssl.endpoint.identification.algorithm"] = given["ssl.endpoint.identification.algorithm"] or "none"
    return settings


def java_certificates(given: Mapping[str, str]) -> dict[str, str]:
    """Java's settings of certificates that the `given` ones leave open, or have in librdkafka's spelling."""
    settings: dict[str, str] = {}
    for store in ("truststore", "keystore"):
        location = given.get(f"ssl.{store}.location")
        if location and (kind := store_type(location, given.get(f"ssl.{store}.type"))):
            settings[f"ssl.{store}.type"] = kind
    if "ssl.truststore.certificates" in given:
        settings["ssl.truststore.type"] = "PEM"
    if "ssl.keystore.key" in given:
        settings["ssl.keystore.type"] = "PEM"
    if "ssl.ca.location" in given:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": given["ssl.ca.location"]}
    if "ssl.certificate.location" in given:
        # The Java client takes one file with certificate and key, or their texts.
        settings |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": Path(given["ssl.certificate.location"]).read_text(encoding="ascii"),
            "ssl.keystore.key": Secret(Path(given["ssl.key.location"]).read_text(encoding="ascii")),
        }
    if given.get("ssl.endpoint.identification.algorithm") == "none":
        settings["ssl.endpoint.identification.algorithm"] = ""
    return settings


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
