"""Checks how long certificates are valid: when one ends, so does every connection that needs it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography.x509 import load_pem_x509_certificates

from engine.doctor.checks import Finding, failed, ok, warning
from engine.errors import UnreachableError
from engine.schemas.section import SchemaConfig
from engine.telemetry.http_section import HttpConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from cryptography.x509 import Certificate

    from routes.model import Config

__all__ = ["certificates_of", "check_certificate", "check_certificates", "expiry_times"]

_PEM = b"-----BEGIN CERTIFICATE-----"
_SOON = timedelta(days=30)
_OWN = ("ssl.certificate.location", "ssl.keystore.location")
_TRUSTED = ("ssl.ca.location", "ssl.truststore.location")


def check_certificates(files: Iterable[tuple[Path, bool]]) -> Iterator[Finding]:
    """Checks the certificates in the files of `certificates_of`, as far as they are PEM files."""
    now = datetime.now(UTC)
    for path, is_own in files:
        yield from check_certificate(path, now, is_own=is_own)


def expiry_times(files: Iterable[tuple[Path, bool]]) -> dict[str, float]:
    """The time at which each certificate in the files of `certificates_of` expires, in seconds since 1970.

    Files that cannot be read or are not PEM are left out.
    """
    deciding = ((path, _deciding(path, is_own=is_own)) for path, is_own in files)
    return {
        str(path): certificate.not_valid_after_utc.timestamp()
        for path, certificate in deciding
        if certificate is not None
    }


def certificates_of(config: Config) -> Iterable[tuple[Path, bool]]:
    """Each file with certificates of the bridge, with True, and of the authorities that it trusts, with False."""
    base = config.path.absolute().parent
    tables = (config.kafka.common, config.kafka.producer, config.kafka.consumer)
    kafka = [base / table[key] for table in tables for key in _OWN if key in table]
    registry = config.section(SchemaConfig)
    shown = (config.section(HttpConfig).certificate, registry.certificate)
    own = [*shown, *(path for broker in config.brokers for path in broker.certificates), *kafka]
    trusted = [base / table[key] for table in tables for key in _TRUSTED if key in table]
    trusted += [path for broker in config.brokers for path in broker.authorities]
    trusted += [registry.ca] if registry.ca else []
    return [
        *((path, True) for path in dict.fromkeys(filter(None, own))),
        *((path, False) for path in dict.fromkeys(trusted)),
    ]


def check_certificate(path: Path, now: datetime, *, is_own: bool) -> Iterator[Finding]:
    """Yields the finding for a certificate file; none if it is not PEM or, as other checks report, cannot be read."""
    found = _deciding(path, is_own=is_own)
    if found is None:
        return
    name = f"certificate {path.name}"
    remedy = "renew it" if is_own else "get the authority's new one"
    begins, ends = found.not_valid_before_utc, found.not_valid_after_utc
    if ends <= now:
        yield failed(name, f"{path} has expired on {ends:%Y-%m-%d %H:%M} UTC", remedy, UnreachableError)
    elif begins > now:
        what = f"{path} is valid only from {begins:%Y-%m-%d %H:%M} UTC on"
        yield failed(name, what, "is the clock of this machine right?", UnreachableError)
    elif ends - now < _SOON:
        yield warning(name, f"{path} expires on {ends:%Y-%m-%d %H:%M} UTC", f"{remedy}, and restart the bridge")
    else:
        yield ok(name, f"{path} is valid until {ends:%Y-%m-%d}")


def _deciding(path: Path, *, is_own: bool) -> Certificate | None:
    """The certificate of a file whose end counts; None if there is none.

    Of the bridge's own file the first certificate counts, which is the bridge's; of authorities the one that is valid
    for the longest, because bundles contain old ones, too.
    """
    certificates = _read(path)
    if not certificates:
        return None
    return certificates[0] if is_own else max(certificates, key=lambda each: each.not_valid_after_utc)


def _read(path: Path) -> Sequence[Certificate]:
    try:
        text = path.read_bytes()
        return load_pem_x509_certificates(text) if _PEM in text else []
    except (OSError, ValueError):
        return []
