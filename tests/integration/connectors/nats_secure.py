"""NATS servers that want TLS or a login, with certificates and credentials made for the test."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from typing import TYPE_CHECKING, Any

import nkeys  # type: ignore[import-untyped]

from engine.embedded import EmbeddedNats
from engine.embedded.ports import accepts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PASSWORD = "s3cret with odd chars: \\ é"
TOKEN = "t0ken-for-the-test"

OPERATOR, ACCOUNT, USER = nkeys.PREFIX_BYTE_OPERATOR, nkeys.PREFIX_BYTE_ACCOUNT, nkeys.PREFIX_BYTE_USER


class SecureNats(EmbeddedNats):
    """A server whose configuration is the test's."""

    def __init__(self, folder: Path, port: int, program: Path, configuration: str) -> None:
        super().__init__(folder, port, program)
        self.port = port
        self._text = configuration

    def _command(self, program: Path) -> Sequence[str | Path]:
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / "test.conf"
        file.write_text(self._text, encoding="utf-8")
        listen = ("--addr", "127.0.0.1", "--port", str(self.port))
        return [program, "--config", file, *listen, "--log", str(self.log)]

    def _answers(self) -> bool:
        return accepts(self.port)


def tls(certificates: Path, name: str, *, mutual: bool = False) -> str:
    """A server's configuration of TLS."""
    asks = f"ca_file: '{certificates / 'ca.pem'}', verify: true" if mutual else ""
    return f"tls {{ cert_file: '{certificates / name}.pem', key_file: '{certificates / name}.key', {asks} }}\n"


def credentials(file: Path) -> str:
    """Writes a credentials file; the configuration of a server that takes it."""
    operator, account, user = (_pair(kind) for kind in (OPERATOR, ACCOUNT, USER))
    account_jwt = _jwt(account[1], operator, "account", {"limits": _UNLIMITED})
    user_jwt = _jwt(user[1], account, "user", {"subs": -1, "data": -1, "payload": -1})
    file.write_text(
        f"-----BEGIN NATS USER JWT-----\n{user_jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user[0]}\n------END USER NKEY SEED------\n"
    )
    operator_jwt = _jwt(operator[1], operator, "operator", {})
    return f"operator: {operator_jwt}\nresolver: MEMORY\nresolver_preload: {{ {account[1]}: {account_jwt} }}\n"


_UNLIMITED = {
    "subs": -1,
    "data": -1,
    "payload": -1,
    "imports": -1,
    "exports": -1,
    "wildcards": True,
    "conn": -1,
    "leaf": -1,
}


def _pair(kind: int) -> tuple[str, str]:
    """Seed and public key."""
    seed = nkeys.encode_seed(os.urandom(32), kind).decode()
    return seed, nkeys.from_seed(bytearray(seed.encode())).public_key.decode()


def _jwt(subject: str, issuer: tuple[str, str], kind: str, claims: dict[str, Any]) -> str:
    body = {
        "jti": hashlib.sha256(subject.encode()).hexdigest(),
        "iat": int(time.time()),
        "iss": issuer[1],
        "name": kind,
        "sub": subject,
        "nats": {"type": kind, "version": 2, **claims},
    }
    text = f"{_encoded({'typ': 'JWT', 'alg': 'ed25519-nkey'})}.{_encoded(body)}"
    signature = nkeys.from_seed(bytearray(issuer[0].encode())).sign(text.encode())
    return f"{text}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def _encoded(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
