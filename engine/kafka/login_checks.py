"""Checks of the login to a Kafka cluster, wherever a file writes it: behind `kafka.`, or behind that of a connector."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from engine.kafka.kerberos import keytab_principals, lacks_kerberos
from engine.kafka.security import (
    ENDPOINT,
    GSSAPI,
    ISSUER,
    KEYTAB,
    MSK_IAM,
    OAUTHBEARER,
    PRINCIPAL,
    read_jaas,
    store_type,
)
from routes.errors import Level
from routes.keys.values import BadValueError

if TYPE_CHECKING:
    from routes.keys.settings import Setting, Settings

__all__ = ["ClientKeys", "check_certificates", "check_in_the_clear", "check_login", "is_file", "not_one_of"]

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_PASSWORD = ("sasl.username", "sasl.password")
_TOKEN = ("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret")
_TICKET = (PRINCIPAL, KEYTAB)
_NEEDED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), _PASSWORD),
    OAUTHBEARER: _TOKEN,
    GSSAPI: _TICKET,
    MSK_IAM: (),
}
"""Settings that a login needs, by mechanism."""
_MECHANISMS = tuple(_NEEDED)
_PRINCIPAL = re.compile(r"[\w.-]+(/[\w.-]+)?@[\w.-]+")
_ENDPOINTS = (ENDPOINT, ISSUER)
_USED_BY = {
    **dict.fromkeys((*_PASSWORD, *_TOKEN, *_TICKET, *_ENDPOINTS, "sasl.jaas.config"), ("SASL", "SASL_SSL")),
    **dict.fromkeys(("store.location", "ca.location", "certificate.location"), ("SSL", "SSL or SASL_SSL")),
}
"""By the end of a setting's name: the part that the name of a security protocol using it contains, and the text for a
hint."""


@dataclass(frozen=True, slots=True)
class ClientKeys:
    """Settings of the clients of one Kafka cluster, as a file sets them."""

    prefix: str
    """Text before the names of Kafka's settings in the keys of the file, such as `kafka.`."""
    settings: Mapping[str, Setting]
    """Settings by the names of Kafka's."""

    def get(self, name: str) -> Setting | None:
        """Returns the setting of a name; None if the file does not set it."""
        return self.settings.get(name)


def check_login(settings: Settings, keys: ClientKeys) -> None:
    """Checks the login: protocol, mechanism and credentials that both kinds of clients support."""
    protocol, mechanism = keys.get("security.protocol"), keys.get("sasl.mechanism")
    if protocol and protocol.value and protocol.value not in _PROTOCOLS:
        not_one_of(settings, protocol, _PROTOCOLS)
    if mechanism and mechanism.value and mechanism.value not in _MECHANISMS:
        not_one_of(settings, mechanism, _MECHANISMS)
    jaas = keys.get("sasl.jaas.config")
    if jaas and jaas.value:
        try:
            read_jaas(jaas.value)
        except BadValueError as error:
            settings.faults.append(jaas.entry.fault(str(error), error.hint))
    if mechanism is not None and mechanism.value == OAUTHBEARER:
        _token_endpoint(settings, keys, mechanism)
    if mechanism is not None and mechanism.value == GSSAPI:
        _kerberos(settings, keys, mechanism)
    if protocol and str(protocol.value).startswith("SASL_"):
        if mechanism is None:
            hint = f"set {keys.prefix}sasl.mechanism to {', '.join(_MECHANISMS[:-1])} or {_MECHANISMS[-1]}"
            settings.faults.append(protocol.entry.fault(f"'{protocol.value}' needs a mechanism", hint))
        needed = _NEEDED.get(str(mechanism.value) if mechanism else "", _PASSWORD)
        if jaas is None and needed != _TICKET and not all(keys.get(name) for name in needed):
            hint = f"set {' and '.join(f'{keys.prefix}{name}' for name in needed)}, or {keys.prefix}sasl.jaas.config"
            settings.faults.append(protocol.entry.fault(f"'{protocol.value}' needs a login", hint))


def _token_endpoint(settings: Settings, keys: ClientKeys, mechanism: Setting) -> None:
    """Checks that there is one address to get tokens from, and that it is a URL."""
    given = [setting for name in _ENDPOINTS if (setting := keys.get(name)) is not None]
    if len(given) != 1:
        both = " and ".join(f"{keys.prefix}{name}" for name in _ENDPOINTS)
        what = f"{both} are both set" if given else f"'{OAUTHBEARER}' needs an address to get tokens from"
        hint = (
            "leave one of them out" if given else f"set {keys.prefix}{_ENDPOINTS[1]}, or {keys.prefix}{_ENDPOINTS[0]}"
        )
        settings.faults.append((given[-1] if given else mechanism).entry.fault(what, hint))
    for setting in given:
        if setting.value is None:
            continue
        address = urlsplit(setting.value)
        if address.scheme not in ("https", "http") or not address.hostname:
            settings.faults.append(setting.entry.fault(f"'{setting.value}' is not a URL", "https://host/path"))
        elif address.scheme == "http":
            what = "the secret of the client goes over the network in the clear"
            settings.faults.append(setting.entry.fault(what, "use https", level=Level.WARNING))


def _kerberos(settings: Settings, keys: ClientKeys, mechanism: Setting) -> None:
    """Checks that librdkafka can log in by Kerberos, and that there is a principal with its keytab."""
    if lacks_kerberos():
        what = "this installation's librdkafka is built without Kerberos"
        hint = "build librdkafka and confluent-kafka with libsasl2, or use another login"
        settings.faults.append(mechanism.entry.fault(what, hint))
    principal, keytab = keys.get(PRINCIPAL), keys.get(KEYTAB)
    if principal is None or keytab is None:
        hint = f"set {' and '.join(f'{keys.prefix}{name}' for name in _TICKET)}"
        settings.faults.append(mechanism.entry.fault(f"'{GSSAPI}' needs a principal and a keytab", hint))
    elif principal.value and keytab.value:
        _principal(settings, principal, keytab)


def _principal(settings: Settings, principal: Setting, keytab: Setting) -> None:
    """Checks that the principal is the one of all clusters, and that the keytab has its keys alone."""
    name, file = str(principal.value), str(keytab.value)
    _one_principal(settings, principal)
    if not _PRINCIPAL.fullmatch(name):
        settings.faults.append(principal.entry.fault(f"'{name}' is not NAME@REALM", "bridge@EXAMPLE.COM"))
    elif settings.has_file(file):
        try:
            found = keytab_principals(settings.base / file)
        except BadValueError as error:
            settings.faults.append(keytab.entry.fault(str(error), error.hint))
            return
        if found != [name]:
            what = f"'{file}' is not a keytab of '{name}' alone"
            hint = f"it has keys of {', '.join(found) or 'nobody'}; extract one with `ktadd` of kadmin"
            settings.faults.append(keytab.entry.fault(what, hint))


def _one_principal(settings: Settings, principal: Setting) -> None:
    """Checks that all clusters have one principal: a process has the tickets of one."""
    first = next(each for each in settings.by_key.values() if each.entry.key.endswith(PRINCIPAL))
    if first.value != principal.value:
        what = f"'{principal.value}' is another principal than that of '{first.entry.key}'"
        settings.faults.append(principal.entry.fault(what, "a bridge has one principal; use it for all clusters"))


def check_in_the_clear(settings: Settings, keys: ClientKeys) -> None:
    """Warns of a login or certificates without a protocol that uses them: all goes over the network in the clear.

    Only if no other fault of these keys was found, which may be the reason.
    """
    if any(fault.key.startswith(keys.prefix) for fault in settings.faults):
        return
    protocol = keys.get("security.protocol")
    value = protocol.value if protocol else "PLAINTEXT"
    for name, setting in keys.settings.items():
        used, wanted = next((rule for end, rule in _USED_BY.items() if name.endswith(end)), ("", ""))
        if value in _PROTOCOLS and used not in value:
            message = f"'{setting.entry.key}' has no effect with {keys.prefix}security.protocol={value}"
            fault = setting.entry.key_fault(message, f"set {keys.prefix}security.protocol={wanted}", Level.WARNING)
            settings.faults.append(fault)


def check_certificates(settings: Settings, keys: ClientKeys) -> None:
    """Checks that certificates are in existing files that both kinds of clients can read."""
    for store, advice in (
        ("truststore", f"convert it to PEM and set {keys.prefix}ssl.ca.location"),
        ("keystore", "convert it to PKCS12 or PEM"),
    ):
        location, declared = keys.get(f"ssl.{store}.location"), keys.get(f"ssl.{store}.type")
        if location is None or not location.value:
            continue
        kind = store_type(location.value, declared.value if declared else None)
        if kind is None:
            message, hint = f"'{location.value}' does not tell its type", f"set {keys.prefix}ssl.{store}.type=PEM"
            settings.faults.append(location.entry.fault(message, hint))
        elif kind != "PEM" and not (kind == "PKCS12" and store == "keystore"):
            message = f"not all of the bridge's Kafka clients can read a {kind} {store}"
            settings.faults.append((declared or location).entry.fault(message, advice))
        elif kind == "PEM" and (password := keys.get(f"ssl.{store}.password")):
            hint = f"the password of a private key is {keys.prefix}ssl.key.password"
            settings.faults.append(password.entry.key_fault(f"a PEM {store} has no password", hint))
        elif kind == "PKCS12" and keys.get("ssl.keystore.password") is None:
            settings.faults.append(
                location.entry.fault("a PKCS12 keystore needs its password", f"set {keys.prefix}ssl.keystore.password")
            )
    _certificate_pair(settings, keys)
    for name, setting in keys.settings.items():
        named = is_file(name) and setting.value
        if named and not settings.has_file(setting.value):
            hint = f"looked for {settings.base / setting.value}"
            settings.faults.append(setting.entry.fault(f"there is no file '{setting.value}'", hint))


def _certificate_pair(settings: Settings, keys: ClientKeys) -> None:
    certificate, key = keys.get("ssl.certificate.location"), keys.get("ssl.key.location")
    for one, other, missing in ((certificate, key, "key"), (key, certificate, "certificate")):
        if one and not other:
            settings.faults.append(
                one.entry.key_fault(f"'{one.entry.key}' alone is of no use", f"set {keys.prefix}ssl.{missing}.location")
            )


def is_file(name: str) -> bool:
    """True if a setting's value is the path of a file, relative to the folder of the configuration."""
    return name.endswith((".location", ".keytab"))


def not_one_of(settings: Settings, setting: Setting, values: tuple[str, ...], hint: str = "") -> None:
    """Adds the fault of a setting whose value is not among `values`; `hint` precedes that about a similar value."""
    listed = " or ".join(filter(None, (", ".join(values[:-1]), values[-1])))
    text = str(setting.value)
    near = get_close_matches(text, values, n=1) or get_close_matches(text.upper(), values, n=1)
    hint = f"did you mean {near[0]}?" if near and not hint else hint
    settings.faults.append(setting.entry.fault(f"'{setting.value}' is not {listed}", hint))
