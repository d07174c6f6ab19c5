"""Claim checks: what is wrong with their keys is told at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.claims.section import ClaimCheckConfig
from engine.router.past_routes import routes_text
from routes.config import lint_text, loads
from routes.config.load import loads_routes
from tests.unit.config.start import START

FOLDER = "claim-check.folder=bodies\n"
ABOVE = "routes.r.out.claim-check-above=256KiB\n"
SIZE = "a size from 1KiB to 512MiB"


def told(text: str) -> list[str]:
    return [str(fault).splitlines()[0] for fault in lint_text(START + text).faults]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (ABOVE, "6:32: error: route 'r' keeps bodies as files, and there is no folder for them (as in "
                "claim-check.folder=/srv/bodies)"),
        ("claim-check.keep=2d", "6:18: error: nothing is kept without a folder (set claim-check.folder, or remove "
                                "this)"),
        (FOLDER + "claim-check.keep=1h", "7:18: error: '1h' is not a time from 1d to 3650d with its unit: ms, s, m, h "
                                         "or d"),
        ("routes.r.out.claim-check-above=256KB\n" + FOLDER, f"6:32: error: '256KB' is not {SIZE} (as in 512KiB, 8MiB "
                                                            "or 1048576, which is bytes)"),
        ("routes.r.out.claim-check-above=1\n" + FOLDER, f"6:32: error: '1' is not {SIZE}"),
        ("claim-check.folder=hdfs://host:8020", "6:20: error: 'hdfs://host:8020' names no folder (add one, as in "
                                                "hdfs://host:8020/jms-bridge)"),
        ("claim-check.folder=s3://b/a", "6:20: error: no file system is known for 's3:' (write s3a: for S3)"),
    ],
)  # fmt: skip
def test_a_fault_is_told_at_its_place(text: str, fault: str) -> None:
    assert told(text) == [fault]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("claim-check.keep=2d", "7:18"),
        ("journal.retention=15d", "7:19"),
        ("journal.retention=forever", "7:19"),
        ("journal.retention=15d\nclaim-check.keep=10d", "8:18"),
        ("claim-check.keep=7d", None),
        ("journal.retention=30d\nclaim-check.keep=31d", None),
    ],
)
def test_bodies_that_are_removed_before_the_records_of_sinks_are_told(text: str, place: str | None) -> None:
    message = "topics of sinks keep records as long as journal.retention, and claim-check.keep removes their bodies "
    assert told(FOLDER + text) == (
        [f"{place}: warning: {message}before (make claim-check.keep longer)"] if place else []
    )


def test_sizes_and_the_folder_are_read(tmp_path: Path) -> None:
    config = loads(START + FOLDER + ABOVE, base=tmp_path)
    claims = config.section(ClaimCheckConfig)
    assert (config.routes[0].claim_above, claims.keep_seconds) == (256 << 10, 14 * 86_400)
    assert (claims.folder, claims.place) == (tmp_path / "bodies", str(tmp_path / "bodies"))
    config = loads(START + "claim-check.folder=hdfs://host:8020/bodies\nclaim-check.keep=30d\n")
    assert config.section(ClaimCheckConfig) == ClaimCheckConfig("hdfs://host:8020/bodies", 30 * 86_400)
    assert config.section(ClaimCheckConfig).place == "hdfs://host:8020/bodies"


def test_without_keys_every_body_leaves_in_its_record() -> None:
    config = loads(START)
    assert (config.routes[0].claim_above, config.section(ClaimCheckConfig).place) == (None, None)


def test_the_routes_of_the_last_run_have_their_folder(tmp_path: Path) -> None:
    then = loads_routes(routes_text(START + FOLDER + ABOVE), tmp_path)
    assert then.routes[0].claim_above == 256 << 10
    assert then.section(ClaimCheckConfig).folder == tmp_path / "bodies"
