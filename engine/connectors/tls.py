"""TLS for connectors: the context that a broker's settings make, and what a connection that failed says to people."""

from __future__ import annotations

import os
import re
import socket
import ssl
from typing import TYPE_CHECKING

from engine.errors import SetupError

if TYPE_CHECKING:
    from routes.model import BrokerConfig

__all__ = ["loaded", "tls_context", "why"]

_ERRNO = re.compile(r"\[Errno (\d+)\]")


def tls_context(broker: BrokerConfig) -> ssl.SSLContext:
    """How the broker is verified, and the bridge's own certificate; SetupError where a file is no good."""
    context = loaded(broker, ssl.Purpose.SERVER_AUTH)
    if not broker.tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def loaded(broker: BrokerConfig, purpose: ssl.Purpose) -> ssl.SSLContext:
    """A context with the files of `tls.*`, for one side or the other; SetupError where one is no good."""
    try:
        context = ssl.create_default_context(purpose, cafile=broker.tls_ca)
        if broker.tls_certificate:
            context.load_cert_chain(broker.tls_certificate, broker.tls_key)
    except (OSError, ValueError) as error:
        files = ", ".join(str(file) for file in (broker.tls_ca, broker.tls_certificate, broker.tls_key) if file)
        msg = f"'{broker.name}': TLS cannot use {files}: {error}"
        raise SetupError(msg) from error
    return context


def why(error: Exception) -> str:
    """What an error of a socket or of TLS means, one line for users."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not to be trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        reason = error.reason.replace("_", " ").lower()
        own = (
            "; it wants a certificate of the bridge (tls.certificate), or another one"
            if "certificate" in reason
            else ""
        )
        return f"TLS failed: {reason}{own}"
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror | ssl.SSLError):
        # asyncio writes a text of its own, with the address; of several addresses the first says enough.
        found = _ERRNO.search(str(error))
        number = error.errno or (int(found[1]) if found else None)
        return os.strerror(number) if number else str(error) or type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
