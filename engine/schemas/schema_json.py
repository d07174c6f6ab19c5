"""Schemas and registry of a configuration as `jmsbridge.serdes` (`jvm/spark`) reads them."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from engine.errors import HardFailureError
from engine.schemas.connection import fixed_headers
from engine.schemas.section import REGISTRY_KEYS
from routes.schema_names import SchemaKind

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from engine.schemas.section import SchemaConfig
    from routes.keys.token_login import TokenLogin
    from routes.schema_names import SchemaName, SourceSchema

__all__ = ["registry_settings", "schema_json", "schemas_json"]


def registry_settings(config: SchemaConfig) -> dict[str, Any] | None:
    """The registry of a configuration as `jmsbridge.serdes.RegistrySettings` reads it; None if there is none."""
    if config.urls is None:
        return None
    return {
        "urls": config.urls,
        "headers": fixed_headers(config),
        "tokens": _token_login(config.tokens),
        "authority": _text(config.ca),
        "certificate": _text(config.certificate),
        "key": _text(config.key),
        "timeoutMs": round(config.timeout_seconds * 1000),
        "outageMs": round(config.outage_timeout_seconds * 1000),
        "copies": _text(config.copies_of_registry),
    }


def _token_login(login: TokenLogin) -> dict[str, str | None] | None:
    """The login by access tokens as `jmsbridge.serdes.TokenLogin` reads it."""
    if not login.is_set:
        return None
    return {
        "issuer": login.issuer,
        "endpoint": login.endpoint,
        "clientId": login.client_id,
        "secret": login.secret,
        "scope": login.scope,
        "authority": _text(login.ca),
        "keys": REGISTRY_KEYS,
    }


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def schemas_json(schemas: Iterable[SourceSchema], base: Path) -> str:
    """The schemas of sources as `jmsbridge.serdes.SourceSchemas` reads them; paths of files begin at `base`.

    Raises HardFailureError if a file cannot be read.
    """
    return json.dumps(
        {each.source: {**schema_json(each.schema, base), "takesText": each.takes_text} for each in schemas}
    )


def schema_json(schema: SchemaName, base: Path) -> dict[str, Any]:
    """The schema as `jmsbridge.serdes.NamedSchema` reads it."""
    given = {"type": schema.kind.registry_type, "name": str(schema), "message": schema.message}
    if schema.file is None:
        return {**given, "subject": schema.subject, "version": schema.version}
    try:
        content = (base / schema.file).read_bytes()
        text = base64.b64encode(content).decode() if schema.kind is SchemaKind.PROTOBUF else content.decode()
    except (OSError, UnicodeDecodeError) as error:
        msg = f"the schema {schema} cannot be read: {error}"
        raise HardFailureError(msg) from error
    return {**given, "text": text}
