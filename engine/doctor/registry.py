"""Check that the schema registry answers and takes the login. Registers nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from engine.doctor.checks import failed, of_error, ok
from engine.errors import HardFailureError, SetupError, UnreachableError
from engine.schemas.connection import CONNECTION_ERRORS, ask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.doctor.checks import Finding
    from engine.schemas.section import SchemaConfig

__all__ = ["REGISTRY_REMEDY", "check_registry"]

REGISTRY_REMEDY = "start it, or correct schema.registry.url"
_NAME = "schema registry"
_TYPES = "/schemas/types"
"""Path of the question which formats the registry knows."""
_REFUSED = 300
_NO_LOGIN = (401, 403)


def check_registry(config: SchemaConfig, timeout_seconds: float) -> Iterator[Finding]:
    """Checks each server of the registry, whose addresses are configured."""
    for url in config.urls or ():
        try:
            status, answer = ask(config, url, _TYPES, timeout_seconds)
        except SetupError as error:
            yield of_error(_NAME, error, "correct schema.registry.tls.*")
            return
        except (HardFailureError, UnreachableError) as error:
            yield of_error(_NAME, error, "start it, or correct schema.registry.oauthbearer.issuer")
            return
        except CONNECTION_ERRORS as error:
            yield failed(_NAME, f"{url}: {error}", REGISTRY_REMEDY, UnreachableError)
            continue
        yield _finding(url, status, answer)


def _finding(url: str, status: int, answer: bytes) -> Finding:
    if status in _NO_LOGIN:
        remedy = (
            "correct schema.registry.username and schema.registry.password, schema.registry.token, or "
            "schema.registry.oauthbearer.*"
        )
        return failed(_NAME, f"{url} does not take the login ({status})", remedy, HardFailureError)
    if status >= _REFUSED:
        return failed(
            _NAME, f"{url} answers {status}", "is schema.registry.url right, with its path?", HardFailureError
        )
    try:
        types = json.loads(answer)
    except ValueError:
        types = None
    if not isinstance(types, list):
        return failed(_NAME, f"{url} answers, but not as a schema registry", REGISTRY_REMEDY, HardFailureError)
    return ok(_NAME, f"{url} keeps schemas of {', '.join(map(str, types))}")
