"""The version and the configuration of a NATS server, asked of programs that stand in for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.doctor.checks import Severity, ok
from engine.doctor.versions import check_nats_server
from engine.embedded import nats
from engine.embedded.nats import nats_configuration
from engine.embedded.server import ETC


def nats_program(folder: Path, version: str, refuses: str = "") -> Path:
    """A stand-in that tells a version, and says of a configuration what the real one says of an unknown key."""
    program = folder / "nats-server"
    refusal = f'grep -q {refuses} "$3" && {{ echo "$3:7:1: unknown field {refuses}" >&2; exit 1; }}' if refuses else ":"
    program.write_text(
        f'#!/bin/sh\ncase "$1" in --version) echo "nats-server: {version}";; -t) {refusal}; exit 0;; esac\n'
    )
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("version", "file"),
    [("v2.9.10", "nats-2.9.conf"), ("v2.10.0", "nats.conf"), ("2.12.4", "nats.conf"), ("v3.0.0-dev", "nats.conf")],
)
def test_a_nats_server_gets_a_configuration_that_fits_its_version(version: str, file: str, tmp_path: Path) -> None:
    assert nats_configuration(nats_program(tmp_path, version)) == ETC / file


def test_a_nats_server_that_refuses_its_configuration_or_does_not_run_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats, "BUILT", tmp_path / "nats-server")
    program = nats_program(tmp_path, "v2.12.4")
    assert list(check_nats_server()) == [ok("nats-server", f"v2.12.4, {program}")]
    nats_program(tmp_path, "v2.12.4", refuses="logfile_max_num")
    (refused,) = check_nats_server()
    assert (refused.state, refused.remedy) == (Severity.FAILED, nats.REMEDY)
    assert refused.found.endswith("unknown field logfile_max_num")
    program.write_text("#!/bin/sh\necho none\n")
    (unknown,) = check_nats_server()
    assert unknown.found == f"{program} --version does not report a version, it says 'none'"
    program.write_text("#!/none\n")
    (broken,) = check_nats_server()
    assert broken.found.startswith(f"{program} does not run: ")
