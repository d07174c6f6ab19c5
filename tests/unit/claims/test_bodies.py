"""Bodies that are kept as files are put back, as they were or not at all."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.claims.bodies import BodyLostError, KeptBodies
from engine.claims.claim import CLAIM, Claim
from engine.connectors.base import NotConnectedError
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.kafka.source import KafkaSource
from engine.errors import UnreachableError
from engine.record import POSITION, Record
from routes.config import loads

BODY = b"a body" * 1000
DIGEST = hashlib.sha256(BODY).hexdigest()
PLACE = (POSITION, b"journal:0:1")
TEXT = f"2026-11-28/{DIGEST} {len(BODY)}"
HAS = ((CLAIM, TEXT.encode()),)


def record(*headers: tuple[str, bytes | None], value: bytes | None = b"") -> Record:
    return Record(b"key", value, headers)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    file = tmp_path / "2026-11-28" / DIGEST
    file.parent.mkdir()
    file.write_bytes(BODY)
    return tmp_path


def test_a_record_gets_its_body_back(folder: Path) -> None:
    restored = KeptBodies(folder).restored(record(("jms.a", b"1"), PLACE, *HAS, ("jmsbridge.route", b"r")))
    assert restored == record(("jms.a", b"1"), PLACE, ("jmsbridge.route", b"r"), value=BODY)
    assert KeptBodies(str(folder)).body(b"", (PLACE, *HAS)) == BODY


def test_a_record_with_its_body_stays_as_it_is(folder: Path) -> None:
    bodies = KeptBodies(folder)
    for each in (record(), record(value=None), record(PLACE, value=b"x"), record(PLACE, *HAS, value=b"x")):
        assert bodies.restored(each) is each
    assert bodies.body(None, None) is None


def test_only_the_claim_behind_the_last_position_counts(folder: Path) -> None:
    bodies = KeptBodies(folder)
    forged = (CLAIM, b"2026-11-28/" + b"0" * 64 + b" 6000")
    for each in (record(*HAS, PLACE), record(PLACE, *HAS, PLACE)):
        assert bodies.restored(each) is each
    assert bodies.restored(record(forged, PLACE, *HAS)).value == BODY


@pytest.mark.parametrize(
    "text",
    [b"", b"../secret 6", TEXT.encode() + b"0" * 20, TEXT.upper().encode(), b"2026-11-28/../../etc/passwd 10", b"\xff",
     TEXT.replace("2026", "\u0662\u0660\u0662\u0666").encode(), TEXT.encode() + b"\n"],
)  # fmt: skip
def test_a_claim_of_another_form_names_no_file(folder: Path, text: bytes) -> None:
    with pytest.raises(BodyLostError, match=r"its header jmsbridge\.claim is not a claim on a body"):
        KeptBodies(folder).restored(record(PLACE, (CLAIM, text)))


def test_a_file_that_is_gone_or_altered_is_told(folder: Path) -> None:
    file, bodies = folder / "2026-11-28" / DIGEST, KeptBodies(folder)
    for content in (BODY[:-1], BODY + b"x", b"", BODY[:-1] + b"X"):
        file.write_bytes(content)
        with pytest.raises(BodyLostError, match=f"its body was altered: the file .*{DIGEST} does not have 6000 bytes"):
            bodies.restored(record(PLACE, *HAS))
    file.unlink()
    with pytest.raises(BodyLostError, match=f"its body is gone: there is no file .*/2026-11-28/{DIGEST}; was it"):
        bodies.restored(record(PLACE, *HAS))
    file.write_bytes(BODY)
    assert bodies.restored(record(PLACE, *HAS)).value == BODY


def test_a_folder_that_is_away_is_not_a_body_that_is_gone(folder: Path) -> None:
    away, bodies = folder.with_name("away"), KeptBodies(folder)
    folder.rename(away)
    with pytest.raises(UnreachableError, match=r"claim-check\.folder .* cannot be read: there is no such folder"):
        bodies.restored(record(PLACE, *HAS))
    away.rename(folder)
    assert bodies.restored(record(PLACE, *HAS)).value == BODY


def test_without_a_folder_the_key_is_named() -> None:
    with pytest.raises(BodyLostError, match=r"in the file 2026-11-28/.*, and claim-check\.folder does not say in"):
        KeptBodies(None).restored(record(PLACE, *HAS))


def test_a_claim_reads_as_it_is_written() -> None:
    claim = Claim.on(BODY)
    assert Claim.of((PLACE, (CLAIM, str(claim).encode()))) == claim
    assert claim.fits(BODY)
    assert not claim.fits(BODY[1:])


def test_a_source_of_topics_takes_the_bodies_that_another_bridge_kept(folder: Path) -> None:
    config = loads(f"""
bridge.id=b2
kafka.bootstrap.servers=127.0.0.1:1
claim-check.folder={folder}
source.k.type=kafka
source.k.destinations=orders
routes.a.in.include=TRUE
routes.a.out.topic=out
""")
    [source] = config.sources
    kafka = KafkaSource(SystemEndpoint.of(config, source), 1)  # type: ignore[arg-type]
    claimed: Any = SimpleNamespace(
        topic=lambda: "orders",
        partition=lambda: 0,
        offset=lambda: 7,
        key=lambda: None,
        value=lambda: b"",
        headers=lambda: [PLACE, *HAS],
        timestamp=lambda: (1, 0),
    )
    assert kafka._delivery(claimed).message.body == BODY
    (folder / "2026-11-28" / DIGEST).unlink()
    fault = kafka._delivery(claimed).fault
    assert fault is not None
    assert fault.startswith("its body is gone")
    (folder / "2026-11-28").rmdir()
    folder.rmdir()
    with pytest.raises(NotConnectedError, match="cannot be read"):
        kafka._delivery(claimed)
