"""TLS for connectors: contexts made from a broker's settings, and explanations of failed connections."""

from __future__ import annotations

import os
import re
import socket
import ssl
from typing import TYPE_CHECKING

from engine.tls import context

if TYPE_CHECKING:
    from routes.systems import NetworkConfig

__all__ = ["loaded", "tls_context", "why"]

_NO_TLS = ("wrong version number", "record layer failure", "packet length too long", "unexpected eof while reading")
"""OpenSSL's reasons when the peer does not speak TLS."""
_NO_TLS_PORT = "; is this a TLS port?"
_ADVICE = {
    (10,): "; it has to be renewed",
    (18, 19, 20, 21): "; tls.ca has to name the certificate of who has signed it",
    (62, 64): "; connect by a name that is in it, or give the broker one with this name",
}
"""Advice by OpenSSL's verification codes: expired certificate, unknown signer, another host name."""
_ERRNO = re.compile(r"\[Errno (\d+)\]")


def tls_context(broker: NetworkConfig) -> ssl.SSLContext:
    """Makes the client context for a broker: how to verify the broker, and the bridge's own certificate.

    Raises:
        SetupError: a file of `tls.*` cannot be used.
    """
    made = loaded(broker, ssl.Purpose.SERVER_AUTH)
    if not broker.tls_verify:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    return made


def loaded(broker: NetworkConfig, purpose: ssl.Purpose) -> ssl.SSLContext:
    """Makes a context with the files of `tls.*`, for the client's or the server's side.

    Raises:
        SetupError: a file cannot be used.
    """
    return context(
        f"'{broker.name}'", purpose, ca=broker.tls_ca, certificate=broker.tls_certificate, key=broker.tls_key
    )


def why(error: Exception) -> str:
    """Explains an error of a socket or of TLS, and its remedy, in one line for users."""
    if isinstance(error, ssl.SSLCertVerificationError):
        advice = next((advice for codes, advice in _ADVICE.items() if error.verify_code in codes), "")
        return f"its certificate is not to be trusted: {error.verify_message.rstrip('.')}{advice}"
    if isinstance(error, ssl.SSLError) and error.reason:
        reason = error.reason.replace("_", " ").lower()
        return f"TLS failed: {reason}{_advice(reason)}"
    if isinstance(error, TimeoutError) and "handshake" in str(error):
        return f"TLS failed: no answer to the handshake{_NO_TLS_PORT}"
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror | ssl.SSLError):
        # asyncio writes a text of its own that contains the address; of several addresses the first is enough.
        match = _ERRNO.search(str(error))
        number = error.errno or (int(match[1]) if match else None)
        return os.strerror(number) if number else str(error) or type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def _advice(reason: str) -> str:
    if "certificate" in reason:
        return "; it wants a certificate of the bridge (tls.certificate), or another one"
    return _NO_TLS_PORT if reason in _NO_TLS else ""
