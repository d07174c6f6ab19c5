"""Checks of `kafka.*`, and of the reserved settings of `spark.*`.

They find misspelt names, values that a client refuses, and settings that only one client supports.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from routes.config.jaas import read_jaas
from routes.config.kafka_names import COMMON, CONSUMER, PRODUCER, RESERVED, RESERVED_SPARK, TWO_SPELLINGS
from routes.config.kafka_values import CHOICES, NOT_LESS, WHOLE
from routes.errors import Level
from routes.keys.values import BadValueError, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from routes.keys.settings import Setting, Settings

__all__ = ["KAFKA_CHECKS", "store_type"]

_KAFKA_ROWS = ("kafka.*", "kafka.producer.*", "kafka.consumer.*")
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_USED_BY = {
    **dict.fromkeys(("sasl.username", "sasl.password", "sasl.jaas.config"), ("SASL", "SASL_SSL")),
    **dict.fromkeys(("store.location", "ca.location", "certificate.location"), ("SSL", "SSL or SASL_SSL")),
}
"""By the end of a setting's name: the part that the name of a security protocol using it contains, and the text for a
hint."""
_KNOWN = sorted({"bootstrap.servers", *COMMON, *PRODUCER, *CONSUMER, *TWO_SPELLINGS})
_SUFFIXES = {".pem": "PEM", ".crt": "PEM", ".cer": "PEM", ".p12": "PKCS12", ".pfx": "PKCS12", ".jks": "JKS"}


def store_type(location: str, declared: str | None) -> str | None:
    """Returns the type of a key or trust store: as declared, else by its file name; None if neither tells."""
    if declared:
        return declared.upper()
    return next((kind for suffix, kind in _SUFFIXES.items() if location.lower().endswith(suffix)), None)


def reserved_settings(settings: Settings) -> None:
    """Checks that settings which the bridge makes itself have only the value that it would give them."""
    for setting in _kafka(settings):
        if setting.name == "bootstrap.servers":
            fault = setting.entry.key_fault(f"'{setting.entry.key}' is not supported", "set kafka.bootstrap.servers")
            settings.faults.append(fault)
        elif setting.name in RESERVED:
            _check_reserved(settings, setting, RESERVED[setting.name])
    for setting in settings.open("spark.*"):
        if setting.entry.key in RESERVED_SPARK:
            _check_reserved(settings, setting, RESERVED_SPARK[setting.entry.key])


def unknown_kafka_settings(settings: Settings) -> None:
    """Finds misspelt names: close to one of Kafka's.

    Any other unknown name is passed to the Java clients, which may have plug-ins, with a warning.
    """
    for setting in _kafka(settings):
        name = setting.name
        if name in _KNOWN or name in RESERVED:
            continue
        if name == "enable.ssl.certificate.verification":
            hint = "the Java clients cannot do without; name the certificates to trust in kafka.ssl.ca.location"
            settings.faults.append(setting.entry.key_fault(f"'{setting.entry.key}' is not supported", hint))
        elif near := get_close_matches(name, _KNOWN, n=1, cutoff=0.8):
            prefix = setting.entry.key.removesuffix(name)
            fault = setting.entry.key_fault(f"unknown key '{setting.entry.key}'", f"did you mean '{prefix}{near[0]}'?")
            settings.faults.append(fault)
        else:
            message = f"'{setting.entry.key}' is no setting of Kafka's clients"
            hint = "it is passed to Spark's Kafka clients as it is, and to no other"
            settings.faults.append(setting.entry.key_fault(message, hint, Level.WARNING))


def kafka_values(settings: Settings) -> None:
    """Finds values that a client refuses.

    The client would refuse them only when it is made, under its own name of the setting.
    """
    for setting in _kafka(settings):
        try:
            if setting.value is not None and setting.name in WHOLE:
                whole(*WHOLE[setting.name]).parse(setting.value)
        except BadValueError as error:
            settings.faults.append(setting.entry.fault(str(error), error.hint))
        allowed = CHOICES.get(setting.name)
        if allowed and setting.value is not None and setting.value not in allowed:
            _one_of(settings, setting, allowed)


def kafka_values_that_fit(settings: Settings) -> None:
    """Checks settings that limit each other.

    A setting may not be less than the sum of the others that it leaves time for; each client refuses its own pairs.
    """
    for role, foreign in (("producer", CONSUMER), ("consumer", PRODUCER)):
        rows = ("kafka.*", f"kafka.{role}.*")
        given = {s.name: s for row in rows for s in settings.open(row) if s.name not in foreign}
        for name, default, others in NOT_LESS:
            value = _number(given, name, default)
            least = sum(_number(given, other, without) or 0 for other, without in others.items())
            if value is None or value >= least:
                continue
            entry = next(given[each].entry for each in (name, *others) if each in given)
            message = f"{name} ({value}) is less than {' and '.join(others)} ({least})"
            if (fault := entry.fault(message, f"raise kafka.{name}")) not in settings.faults:
                settings.faults.append(fault)


def kafka_login(settings: Settings) -> None:
    """Checks the login: protocol, mechanism and credentials that both kinds of clients support."""
    protocol, mechanism = _set(settings, "security.protocol"), _set(settings, "sasl.mechanism")
    if protocol and protocol.value and protocol.value not in _PROTOCOLS:
        _one_of(settings, protocol, _PROTOCOLS)
    if mechanism and mechanism.value and mechanism.value not in _MECHANISMS:
        _one_of(settings, mechanism, _MECHANISMS)
    jaas = _set(settings, "sasl.jaas.config")
    if jaas and jaas.value:
        try:
            read_jaas(jaas.value)
        except BadValueError as error:
            settings.faults.append(jaas.entry.fault(str(error), error.hint))
    if protocol and str(protocol.value).startswith("SASL_"):
        if mechanism is None:
            hint = f"set kafka.sasl.mechanism to {', '.join(_MECHANISMS[:-1])} or {_MECHANISMS[-1]}"
            settings.faults.append(protocol.entry.fault(f"'{protocol.value}' needs a mechanism", hint))
        if jaas is None and not (_set(settings, "sasl.username") and _set(settings, "sasl.password")):
            hint = "set kafka.sasl.username and kafka.sasl.password, or kafka.sasl.jaas.config"
            settings.faults.append(protocol.entry.fault(f"'{protocol.value}' needs a login", hint))


def kafka_in_the_clear(settings: Settings) -> None:
    """Warns of a login or certificates without a protocol that uses them: all goes over the network in the clear.

    Only if no other fault of `kafka.*` was found, which may be the reason.
    """
    if any(fault.key.startswith("kafka.") for fault in settings.faults):
        return
    protocol = _set(settings, "security.protocol")
    value = protocol.value if protocol else "PLAINTEXT"
    for setting in settings.open("kafka.*"):
        used, wanted = next((rule for end, rule in _USED_BY.items() if setting.name.endswith(end)), ("", ""))
        if value in _PROTOCOLS and used not in value:
            message = f"'{setting.entry.key}' has no effect with kafka.security.protocol={value}"
            fault = setting.entry.key_fault(message, f"set kafka.security.protocol={wanted}", Level.WARNING)
            settings.faults.append(fault)


def kafka_certificates(settings: Settings) -> None:
    """Checks that certificates are in existing files that both kinds of clients can read."""
    for store, advice in (
        ("truststore", "convert it to PEM and set kafka.ssl.ca.location"),
        ("keystore", "convert it to PKCS12 or PEM"),
    ):
        location, declared = _set(settings, f"ssl.{store}.location"), _set(settings, f"ssl.{store}.type")
        if location is None or not location.value:
            continue
        kind = store_type(location.value, declared.value if declared else None)
        if kind is None:
            message, hint = f"'{location.value}' does not tell its type", f"set kafka.ssl.{store}.type=PEM"
            settings.faults.append(location.entry.fault(message, hint))
        elif kind != "PEM" and not (kind == "PKCS12" and store == "keystore"):
            message = f"not all of the bridge's Kafka clients can read a {kind} {store}"
            settings.faults.append((declared or location).entry.fault(message, advice))
        elif kind == "PEM" and (password := _set(settings, f"ssl.{store}.password")):
            hint = "the password of a private key is kafka.ssl.key.password"
            settings.faults.append(password.entry.key_fault(f"a PEM {store} has no password", hint))
        elif kind == "PKCS12" and _set(settings, "ssl.keystore.password") is None:
            settings.faults.append(
                location.entry.fault("a PKCS12 keystore needs its password", "set kafka.ssl.keystore.password")
            )
    _certificate_pair(settings)
    for setting in settings.open("kafka.*"):
        named = setting.name.startswith("ssl.") and setting.name.endswith(".location") and setting.value
        if named and not settings.has_file(setting.value):
            hint = f"looked for {settings.base / setting.value}"
            settings.faults.append(setting.entry.fault(f"there is no file '{setting.value}'", hint))


def _certificate_pair(settings: Settings) -> None:
    certificate, key = _set(settings, "ssl.certificate.location"), _set(settings, "ssl.key.location")
    for one, other, missing in ((certificate, key, "key"), (key, certificate, "certificate")):
        if one and not other:
            settings.faults.append(
                one.entry.key_fault(f"'{one.entry.key}' alone is of no use", f"set kafka.ssl.{missing}.location")
            )


def _number(given: Mapping[str, Setting], name: str, without: int | None) -> int | None:
    """Returns the value of a setting, `without` if it is not set or has a fault of its own."""
    try:
        return whole(*WHOLE[name]).parse(given[name].value or "") if name in given else without
    except BadValueError:
        return without


def _kafka(settings: Settings) -> list[Setting]:
    return [setting for row in _KAFKA_ROWS for setting in settings.open(row)]


def _set(settings: Settings, name: str) -> Setting | None:
    return settings.by_key.get(("kafka.*", name))


def _check_reserved(settings: Settings, setting: Setting, rule: tuple[str | None, str]) -> None:
    allowed, reason = rule
    if setting.value == allowed or (setting.name == "acks" and setting.value == "-1"):
        return
    what = f"can only be '{allowed}'" if allowed else "is set by the bridge"
    settings.faults.append(setting.entry.key_fault(f"'{setting.entry.key}' {what}", reason))


def _one_of(settings: Settings, setting: Setting, values: tuple[str, ...]) -> None:
    listed = f"{', '.join(values[:-1])} or {values[-1]}"
    text = str(setting.value)
    near = get_close_matches(text, values, n=1) or get_close_matches(text.upper(), values, n=1)
    hint = f"did you mean {near[0]}?" if near else ""
    settings.faults.append(setting.entry.fault(f"'{setting.value}' is not {listed}", hint))


KAFKA_CHECKS = (
    reserved_settings,
    unknown_kafka_settings,
    kafka_values,
    kafka_values_that_fit,
    kafka_login,
    kafka_certificates,
    kafka_in_the_clear,
)
"""The checks; each adds its faults to the settings."""
