"""Until when certificates are valid, with files made for the test."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from engine.doctor.certificates import certificates_of, check_certificate, check_certificates
from engine.doctor.checks import Severity
from routes.config import load
from tests.certificates import certify, sign

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certify(tmp_path_factory.mktemp("certificates") / "made")


def states(path: Path, days: float = 0, *, is_own: bool = True) -> list[Severity]:
    """So many days from now."""
    now = datetime.now(UTC) + timedelta(days=days)
    return [finding.state for finding in check_certificate(path, now, is_own=is_own)]


def test_one_that_ends_soon_is_told_before_it_does(folder: Path) -> None:
    # Thirty days.
    bridge = folder / "bridge.pem"
    sign(folder, "long", "ca", days=100)

    assert states(folder / "long.pem") == [Severity.OK]
    assert states(bridge) == [Severity.WARNING]
    assert states(bridge, 31) == [Severity.FAILED]
    assert states(bridge, -1) == [Severity.FAILED]


def test_one_that_has_expired_is_told_with_its_day(folder: Path) -> None:
    (finding,) = check_certificate(folder / "expired.pem", datetime.now(UTC), is_own=True)
    assert finding.state is Severity.FAILED
    assert finding.found.endswith("expired.pem has expired on 2020-01-02 00:00 UTC")


def test_old_ones_among_authorities_do_not_matter(folder: Path) -> None:
    sign(folder, "new", "new", days=100)
    bundle = folder / "bundle.pem"
    bundle.write_bytes((folder / "expired.pem").read_bytes() + (folder / "new.pem").read_bytes())

    assert states(bundle, is_own=False) == [Severity.OK]
    assert states(bundle, is_own=True) == [Severity.FAILED]


@pytest.mark.parametrize("content", [b"", b"\0\1", b"-----BEGIN CERTIFICATE-----\nbroken\n-----END CERTIFICATE-----\n"])
def test_what_is_no_certificate_is_left_to_others(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "it.pem").write_bytes(content)
    assert states(tmp_path / "it.pem") == []
    assert states(tmp_path / "missing.pem") == []


def test_all_that_a_configuration_names_are_looked_at_once(folder: Path) -> None:
    file = folder / "jms-bridge.properties"
    file.write_text(f"""
bridge.id=b
kafka.bootstrap.servers=127.0.0.1:1
kafka.ssl.truststore.location=ca.pem
kafka.ssl.truststore.type=PEM
kafka.ssl.certificate.location={folder}/expired.pem
kafka.ssl.key.location=expired.key
source.jms.type=stomp
source.jms.url=stomp+ssl://127.0.0.1:1
source.jms.destinations=queue:a
source.jms.tls.ca=ca.pem
source.jms.tls.certificate=broker.pem
source.jms.tls.key=broker.key
routes.a.in.include=a='b'
routes.a.out.topic=a
""")
    found = [finding.name for finding in check_certificates(certificates_of(load(file)))]
    assert found == ["certificate broker.pem", "certificate expired.pem", "certificate ca.pem"]
