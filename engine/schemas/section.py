"""Section `schema` of a configuration: the registry of schemas."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from routes.body_steps import StepKind
from routes.keys import table
from routes.keys.addresses import REGISTRY_URLS
from routes.keys.token_login import TOKEN_LOGIN, TokenLogin, check_token_login
from routes.keys.values import PATH, TEXT, TOKEN, duration
from routes.schema_names import SubjectStrategy
from routes.section_registry import Section

if TYPE_CHECKING:
    from routes.keys.settings import Settings
    from routes.schema_names import SchemaName

__all__ = ["REGISTRY_KEYS", "SECTION", "SchemaConfig"]

REGISTRY_KEYS = "schema.registry."
"""Beginning of the keys of the registry."""
_SOURCE = "source.NAME.schema"
_BODY, _READ = "routes.NAME.in.body", "routes.NAME.in.schema"
_WRITTEN, _SUBJECT, _STEPS = (f"routes.NAME.out.{key}" for key in ("schema", "subject", "convert"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaConfig:
    """`schema.*`: the registry of the schemas of bodies, and of keys and values in topologies."""

    urls: tuple[str, ...] | None = table.key(
        "schema.registry.url",
        REGISTRY_URLS,
        "URL of a registry with the HTTP interface of Confluent's Schema Registry; several URLs are tried in turn.",
        example="http://127.0.0.1:8081",
    )
    """None: there is no registry."""
    username: str | None = table.key(
        "schema.registry.username", TEXT, "User name of a login by name and password.", example="jms-bridge"
    )
    password: str | None = table.key(
        "schema.registry.password", TEXT, "Password of the login.", example="${env:REGISTRY_PASSWORD}"
    )
    token: str | None = table.key(
        "schema.registry.token", TOKEN, "Login by a bearer token.", example="${file:registry.token}"
    )
    tokens: TokenLogin = table.part(TokenLogin, TokenLogin(), REGISTRY_KEYS)
    """Login by access tokens of an OpenID Connect server."""
    cluster: str | None = table.key(
        f"{REGISTRY_KEYS}bearer.auth.logical.cluster",
        TOKEN,
        "Logical cluster (`lsrc-…`) of the registry, which Confluent Cloud wants with each token.",
        example="lsrc-1",
    )
    pool: str | None = table.key(
        f"{REGISTRY_KEYS}bearer.auth.identity.pool.id",
        TOKEN,
        "Identity pool (`pool-…`) of the client, which Confluent Cloud wants with tokens of an issuer of your own.",
        example="pool-1",
    )
    ca: Path | None = table.key(
        "schema.registry.tls.ca",
        PATH,
        "Certificates (PEM) to trust. With this key or the next, connections use TLS 1.3 or 1.2.",
        default_note="those of Java",
        example="tls/ca.pem",
    )
    certificate: Path | None = table.key(
        "schema.registry.tls.certificate", PATH, "The bridge's own certificate (PEM).", example="tls/bridge.pem"
    )
    key: Path | None = table.key(
        "schema.registry.tls.key",
        PATH,
        "Private key of the certificate (PEM, PKCS#8, not encrypted).",
        example="tls/bridge.key",
    )
    timeout_seconds: float = table.key(
        "schema.registry.timeout", duration("100ms", "10m"), "Time for a connection and for a request.", default="10s"
    )
    outage_timeout_seconds: float = table.key(
        "schema.registry.outage-timeout",
        duration("1s", "7d"),
        "Time for which the registry may be out of reach before a running topology that needs it ends. Until then "
        "the topology's records wait.",
        default="5m",
    )
    copies: Path | None = table.key(
        "schema.copies",
        PATH,
        "Folder for copies of the schemas that the registry has given; with them a start succeeds without the "
        "registry.",
        default="var/schemas",
    )

    @property
    def copies_of_registry(self) -> Path | None:
        """Folder for the copies of this registry's schemas: another registry means others by the same ids."""
        if self.copies is None:
            return None
        addresses = "\n".join(sorted(self.urls or ()))
        return self.copies / hashlib.sha256(addresses.encode()).hexdigest()[:16]


def registry_login(settings: Settings) -> None:
    """Checks that there is one way to log in to the schema registry, and an address for it."""
    registry = "schema.registry"
    name, password, token = (f"{registry}.{part}" for part in ("username", "password", "token"))
    client = f"{REGISTRY_KEYS}{TOKEN_LOGIN}client.id"
    check_token_login(settings, REGISTRY_KEYS)
    for key, other in ((name, password), (password, name)):
        if settings.is_set(key) and not settings.is_set(other):
            settings.fault(key, "", f"a login without {other}", f"set {other}")
    ways = [key for key in (name, token, client) if settings.is_set(key)]
    if len(ways) > 1:
        settings.fault(ways[-1], "", "two ways to log in", f"keep {' or '.join(ways)}")
    for part in ("logical.cluster", "identity.pool.id"):
        key = f"{REGISTRY_KEYS}bearer.auth.{part}"
        if settings.is_set(key) and not (settings.is_set(token) or settings.is_set(client)):
            settings.fault(key, "", f"'{key}' has no effect without a token", f"set {client} or {token}")
    if ":" in (settings.get(name) or ""):
        settings.fault(name, "", "a user name with a colon", "choose one without")
    for key in (name, token, client, f"{registry}.tls.ca", f"{registry}.tls.certificate"):
        if settings.is_set(key) and not settings.is_set(f"{registry}.url"):
            settings.fault(key, "", f"'{key}' has no effect without a registry", f"set {registry}.url")


def registry_tls(settings: Settings) -> None:
    """Checks that the files for the schema registry exist, and that certificate and private key are both set."""
    tls = "schema.registry.tls"
    for part in ("ca", "certificate", "key"):
        key, path = f"{tls}.{part}", settings.get(f"{tls}.{part}")
        if path is not None and not settings.has_file(path):
            settings.fault(key, "", f"there is no file '{path}'", f"looked for {settings.base / path}")
    for part, other in (("certificate", "key"), ("key", "certificate")):
        if settings.is_set(f"{tls}.{part}") and not settings.is_set(f"{tls}.{other}"):
            settings.fault(f"{tls}.{part}", "", f"a {part} without a {other}", f"set {tls}.{other}")


def schemas_of_sources(settings: Settings) -> None:
    """Checks that sources name schemas of bare values that can be found."""
    for name in settings.names("source"):
        schema = settings.get(_SOURCE, name)
        if schema is None:
            continue
        if not schema.kind.body_format.has_schema:
            settings.fault(_SOURCE, name, f"'{schema}' is not a schema of Avro or Protobuf", "remove it, as for JSON")
        elif schema.file is None and not settings.is_set("schema.registry.url"):
            settings.fault(_SOURCE, name, f"'{schema}' needs a registry of schemas", "set schema.registry.url")
        _file(settings, _SOURCE, name, schema)


def _file(settings: Settings, key: str, name: str, schema: SchemaName) -> None:
    """Checks that the file of a schema, if it has one, is there."""
    if schema.file is not None and not settings.has_file(schema.file):
        settings.fault(key, name, f"there is no file '{schema.file}'", f"looked for {settings.base / schema.file}")


def schemas_of_routes(settings: Settings) -> None:
    """Checks that routes name schemas that can be found: there is a registry, or the file of a schema."""
    # Bare values are read by the schemas of their sources.
    have_bare = any(settings.is_set(_SOURCE, name) for name in settings.names("source"))
    for name in settings.names("routes"):
        body_format, read, written = (settings.get(key, name) for key in (_BODY, _READ, _WRITTEN))
        needing = {
            _BODY: body_format if body_format and body_format.has_schema and not have_bare else None,
            _READ: read if read and (read.file is None if have_bare else read.needs_registry) else None,
            _WRITTEN: written,
        }
        for key, value in needing.items():
            if value is not None and not settings.is_set("schema.registry.url"):
                settings.fault(key, name, f"'{value}' needs a registry of schemas", "set schema.registry.url")
        for key, schema in ((_READ, read), (_WRITTEN, written)):
            if schema is not None:
                _file(settings, key, name, schema)
        if read is not None and body_format not in (None, read.kind.body_format):
            message = f"'in.body' says that bodies are {body_format}, and '{read}' is for {read.kind.body_format}"
            settings.fault(_READ, name, message, "remove one")
        _written_schema(settings, name, written)


def _written_schema(settings: Settings, name: str, written: SchemaName | None) -> None:
    """Checks that bodies can be written by a schema, and that its subject can be known."""
    subjects, steps = settings.get(_SUBJECT, name), settings.get(_STEPS, name)
    if settings.is_set(_SUBJECT, name) and (written is None or written.file is None):
        message = f"'{subjects}' has no effect: no schema of a file is registered for the route"
        settings.fault(_SUBJECT, name, message, "remove it, or name a file in out.schema")
    if written is None:
        return
    if steps is not None and steps.steps[-1].kind in (StepKind.TO, StepKind.GZIP):
        message = f"'{steps.steps[-1]}' leaves no JSON to write by out.schema, which comes after it"
        settings.fault(_STEPS, name, message, "remove one")
    is_made = any(target.address.references for target in settings.get("routes.NAME.out.topic", name) or ())
    if written.file is not None and is_made and subjects is not SubjectStrategy.RECORD:
        hint = "set out.subject=record, or name a subject in out.schema"
        settings.fault(_WRITTEN, name, "the subject would depend on each message's destination", hint)


SECTION = Section(
    about="The registry that keeps the schemas of [bodies](routing-language.md#bodies-with-a-schema), and of values "
    "with a [schema](streams.md#avro-protobuf-and-json-schema) in topologies.",
    settings=SchemaConfig,
    checks=(registry_login, registry_tls, schemas_of_sources, schemas_of_routes),
)
