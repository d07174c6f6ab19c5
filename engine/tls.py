"""TLS contexts made from the bridge's certificates: for connectors, and for its HTTP server."""

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
    """TLS context for a client or a server (`purpose`), with TLS 1.2 or newer.

    Without `ca`, the certificate authorities of the system are trusted.

    Raises:
        SetupError: OpenSSL cannot use one of the files; the text begins with `owner`.
    """
    try:
        made = ssl.create_default_context(purpose, cafile=ca)
        if certificate:
            # Given a password, even an empty one, OpenSSL does not ask for one on the terminal.
            made.load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        files = ", ".join(str(file) for file in (ca, certificate, key) if file)
        msg = f"{owner}: TLS cannot use {files}: {error}"
        raise SetupError(msg) from error
    return made
