"""Login and certificates of Kafka's clients, in Java's spelling and in librdkafka's.

Java's client has user name and password, or the id and the secret of a client, in one text, `sasl.jaas.config`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from routes.keys.secrets import Secret
from routes.keys.values import BadValueError

__all__ = [
    "ENDPOINT",
    "GSSAPI",
    "ISSUER",
    "ISSUER_TRUST",
    "KEYTAB",
    "MSK_IAM",
    "OAUTHBEARER",
    "PRINCIPAL",
    "SECRET_FILES",
    "SERVICE",
    "java_certificates",
    "java_login",
    "librdkafka_certificates",
    "librdkafka_login",
    "read_jaas",
    "store_type",
    "write_jaas",
]

ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
"""Setting with the URL that gives tokens."""
GSSAPI = "GSSAPI"
"""SASL mechanism of a login by Kerberos (RFC 4752)."""
PRINCIPAL = "sasl.kerberos.principal"
"""Setting with the Kerberos name of the bridge, its realm included."""
KEYTAB = "sasl.kerberos.keytab"
"""Setting with the file that has the principal's key."""
SECRET_FILES = ("ssl.key.location", "ssl.keystore.location", KEYTAB)
"""Settings with a file that holds a secret."""
ISSUER = "sasl.oauthbearer.issuer"
"""Setting, of the bridge alone, with the URL of the server that names the token endpoint."""
ISSUER_TRUST = "https.ca.location"
"""Setting with the certificates to trust there, a PEM file."""
MSK_IAM = "AWS_MSK_IAM"
"""SASL mechanism of a login by IAM at Amazon MSK; the clients, which do not have it, log in by tokens, `msk_token`."""
OAUTHBEARER = "OAUTHBEARER"
"""SASL mechanism of a login by a token (RFC 7628), which an OpenID Connect server gives to a client with a secret."""

_OPTION = re.compile(
    r"""(?P<name>[\w.]+)\s*=\s*(?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'|(?P<bare>[^\s;"']+))"""
)
_SUFFIXES = {".pem": "PEM", ".crt": "PEM", ".cer": "PEM", ".p12": "PKCS12", ".pfx": "PKCS12", ".jks": "JKS"}
SERVICE = "sasl.kerberos.service.name"
"""Setting with the first part of the brokers' principals, `kafka` by default; Java's client has no default."""
_KAFKAS = "org.apache.kafka.common.security."
"""Package with the login modules of Kafka's client."""
_KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
"""Login module of Java."""
_MSK_HANDLER = "jmsbridge.msk.MskLogin"
_LOGIN_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
_EXTENSION = "extension_"
"""Beginning of those options of Java's login module that are SASL extensions, such as Confluent's `logicalCluster`."""


@dataclass(frozen=True, slots=True)
class _LoginModule:
    """A login module of Java's client."""

    path: str
    """Class below `org.apache.kafka.common.security`."""
    options: Mapping[str, str]
    """Librdkafka's names of its options."""
    required: tuple[str, ...]
    """The options that a login has to name."""


_PASSWORD = {"username": "sasl.username", "password": "sasl.password"}
_TOKEN = {
    "clientId": "sasl.oauthbearer.client.id",
    "clientSecret": "sasl.oauthbearer.client.secret",
    "scope": "sasl.oauthbearer.scope",
}
_PLAIN = _LoginModule("plain.PlainLoginModule", _PASSWORD, ("username", "password"))
_SCRAM = _LoginModule("scram.ScramLoginModule", _PASSWORD, ("username", "password"))
_OAUTH = _LoginModule("oauthbearer.OAuthBearerLoginModule", _TOKEN, ("clientId", "clientSecret"))
_MODULES = {module.path.rpartition(".")[2]: module for module in (_PLAIN, _SCRAM, _OAUTH)}
_EXTENSIONS = "sasl.oauthbearer.extensions"
_SECRETS = frozenset({"sasl.password", "sasl.oauthbearer.client.secret"})


def read_jaas(text: str) -> dict[str, str]:
    """Reads a login such as `org.apache.kafka.….PlainLoginModule required username="…" password="…";`.

    Returns librdkafka's settings of the same login.

    Raises:
        BadValueError: the text holds no login that librdkafka can do; the error never quotes the text.
    """
    match = re.fullmatch(r"\s*([\w.]+)\s+(?:required|requisite|sufficient|optional)\s+(.*?)\s*;\s*", text, re.DOTALL)
    if match is None:
        raise BadValueError("the value is not a JAAS configuration", _example(_PLAIN))
    name = match[1].rpartition(".")[2]
    if match[1] == _KERBEROS:
        raise BadValueError("a login by Kerberos has keys of its own", f"set {PRINCIPAL} and {KEYTAB} in place of this")
    if name not in _MODULES:
        raise BadValueError(f"the login module '{name}' is not supported", " or ".join(_MODULES))
    module = _MODULES[name]
    options = {option["name"]: _text(option) for option in _OPTION.finditer(match[2])}
    if not options.keys() >= set(module.required):
        raise BadValueError(f"the JAAS configuration names no {' and '.join(module.required)}", _example(module))
    settings = {theirs: options[name] for name, theirs in module.options.items() if name in options}
    extensions = {name.removeprefix(_EXTENSION): options[name] for name in options if name.startswith(_EXTENSION)}
    if extensions:
        settings[_EXTENSIONS] = ",".join(f"{name}={value}" for name, value in extensions.items())
    return {name: Secret(value) if name in _SECRETS else value for name, value in settings.items()}


def write_jaas(mechanism: str, settings: Mapping[str, str]) -> str:
    """Returns the JAAS configuration of a login by a mechanism; `settings` has librdkafka's names."""
    module = {"PLAIN": _PLAIN, OAUTHBEARER: _OAUTH}.get(mechanism, _SCRAM)
    options = {name: settings[theirs] for name, theirs in module.options.items() if theirs in settings}
    for extension in filter(None, settings.get(_EXTENSIONS, "").split(",")):
        name, _, value = extension.partition("=")
        options[_EXTENSION + name.strip()] = value.strip()
    return _jaas(_KAFKAS + module.path, options)


def store_type(location: str, declared: str | None) -> str | None:
    """Returns the type of a key or trust store: as declared, else by its file name; None if neither tells."""
    if declared:
        return declared.upper()
    return next((kind for suffix, kind in _SUFFIXES.items() if location.lower().endswith(suffix)), None)


def librdkafka_login(given: Mapping[str, str]) -> dict[str, str]:
    """Librdkafka's settings of the login among settings that are `given` under Java's names."""
    if given.get("sasl.mechanism") == GSSAPI:
        # The process itself has the tickets, `kerberos.use_keytab`: 0 starts no kinit for them.
        return {PRINCIPAL: given[PRINCIPAL], KEYTAB: given[KEYTAB], "sasl.kerberos.min.time.before.relogin": "0"}
    jaas = given.get("sasl.jaas.config")
    names = (*_PASSWORD.values(), *_TOKEN.values(), _EXTENSIONS, ISSUER_TRUST)
    settings = {name: given[name] for name in names if name in given} | (read_jaas(jaas) if jaas else {})
    if given.get("sasl.mechanism") == OAUTHBEARER:
        settings |= {"sasl.oauthbearer.method": "oidc", ENDPOINT: given[ENDPOINT]}
    if given.get("sasl.mechanism") == MSK_IAM:
        settings["sasl.mechanism"] = OAUTHBEARER
    return settings


def java_login(given: Mapping[str, str], region: str) -> dict[str, str]:
    """Java's settings of a login that is `given` in librdkafka's spelling, and those that a token needs in any.

    Args:
        given: the settings of the clients.
        region: region of the brokers at AWS, for a login by IAM.
    """
    mechanism = given.get("sasl.mechanism", "PLAIN")
    if mechanism == GSSAPI:
        options = {"useKeyTab": "true", "storeKey": "true", "doNotPrompt": "true"}
        login = _jaas(_KERBEROS, {**options, "keyTab": given[KEYTAB], "principal": given[PRINCIPAL]})
        return {"sasl.jaas.config": login, SERVICE: given.get(SERVICE, "kafka")}
    if mechanism == MSK_IAM:
        return {
            "sasl.mechanism": OAUTHBEARER,
            "sasl.jaas.config": _jaas(_KAFKAS + _OAUTH.path, {"region": region}),
            "sasl.login.callback.handler.class": _MSK_HANDLER,
        }
    jaas = given.get("sasl.jaas.config")
    settings: dict[str, str] = {}
    if jaas is None and ("sasl.username" in given or mechanism == OAUTHBEARER):
        jaas = settings["sasl.jaas.config"] = Secret(write_jaas(mechanism, given))
    if mechanism == OAUTHBEARER:
        settings["sasl.login.callback.handler.class"] = given.get("sasl.login.callback.handler.class", _LOGIN_HANDLER)
        if authority := given.get(ISSUER_TRUST):
            # The login module has TLS settings of its own, which are options like any others.
            store = f' ssl.truststore.type="PEM" ssl.truststore.location={_quoted(authority)};'
            settings["sasl.jaas.config"] = Secret(str(jaas).rstrip().removesuffix(";") + store)
    return settings


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


def _jaas(module: str, options: Mapping[str, str]) -> str:
    written = " ".join(f"{name}={_quoted(value)}" for name, value in options.items())
    return f"{module} required {written};"


def _example(module: _LoginModule) -> str:
    return f"as in {_jaas(_KAFKAS + module.path, dict.fromkeys(module.required, '…'))}"
