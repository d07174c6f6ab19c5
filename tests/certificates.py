"""Certificates made for a test: an authority, and what it has signed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["LOOPBACK", "STORE_PASSWORD", "certify", "keep", "sign"]

STORE_PASSWORD = "for-the-test"

LOOPBACK = x509.IPAddress(ip_address("127.0.0.1"))
_OWNERS = {"broker": LOOPBACK, "other": x509.DNSName("elsewhere.example"), "bridge": x509.DNSName("bridge")}


def certify(folder: Path) -> Path:
    """PEM files in a new folder: the authority `ca`, `stranger`, which it has not signed, and each with its key a
    `broker` on loopback, one at an `other` host, an `expired` one, and the `bridge`."""
    folder.mkdir()
    for name in ("ca", "stranger"):
        sign(folder, name, name)
    for name, host in _OWNERS.items():
        sign(folder, name, "ca", host)
    sign(folder, "expired", "ca", LOOPBACK, datetime(2020, 1, 1, tzinfo=UTC), days=1)
    return folder


def sign(
    folder: Path,
    name: str,
    issuer: str,
    host: x509.GeneralName | None = None,
    start: datetime | None = None,
    days: int = 30,
) -> None:
    """Makes a certificate, NAME.pem, with its key, NAME.key; one that is its own issuer is an authority."""
    key = generate_private_key(SECP256R1())
    is_authority = issuer == name
    signing = key if is_authority else _key(folder, issuer)
    start = start or datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(_common_name(name))
        .issuer_name(_common_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if host is not None:
        made = made.add_extension(x509.SubjectAlternativeName([host]), critical=False)
    (folder / f"{name}.pem").write_bytes(made.sign(signing, SHA256()).public_bytes(Encoding.PEM))
    (folder / f"{name}.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def keep(folder: Path, name: str) -> Path:
    """A certificate and its key as a PKCS12 store, for Java, with `STORE_PASSWORD`."""
    certificate = x509.load_pem_x509_certificate((folder / f"{name}.pem").read_bytes())
    secret = BestAvailableEncryption(STORE_PASSWORD.encode())
    store = folder / f"{name}.p12"
    store.write_bytes(serialize_key_and_certificates(name.encode(), _key(folder, name), certificate, None, secret))
    return store


def _key(folder: Path, name: str) -> EllipticCurvePrivateKey:
    key = load_pem_private_key((folder / f"{name}.key").read_bytes(), None)
    assert isinstance(key, EllipticCurvePrivateKey)
    return key


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
