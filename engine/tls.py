"""TLS contexts of the bridge's own certificates: for connectors, and for figures over HTTP."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from engine.errors import SetupError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["context"]


def context(
    owner: str, purpose: ssl.Purpose, *, ca: Path | None = None, certificate: Path | None, key: Path | None
) -> ssl.SSLContext:
    """For one side or the other, TLS 1.2 or newer; SetupError, which begins with `owner`, where a file is no good.

    Without `ca`, what the system trusts is trusted.
    """
    try:
        made = ssl.create_default_context(purpose, cafile=ca)
        if certificate:
            # With a password of its own OpenSSL does not ask for one on the terminal.
            made.load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        files = ", ".join(str(file) for file in (ca, certificate, key) if file)
        msg = f"{owner}: TLS cannot use {files}: {error}"
        raise SetupError(msg) from error
    return made
