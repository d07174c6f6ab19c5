"""Texts of log lines: long ones are cut, behind the masks of secrets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from engine.printable import LONGEST_LINE
from engine.telemetry import logging
from routes.config import loads

CONFIGURATION = """\
bridge.id=b1
source.s.type=stomp
source.s.destinations=queue:q
source.s.username=u
source.s.password=hunter2
routes.r.in.include=TRUE
routes.r.out.topic=t
"""


@pytest.fixture
def log() -> Iterator[structlog.stdlib.BoundLogger]:
    """A log with the masks of a configuration."""
    before = structlog.get_config()
    logging.setup(loads(CONFIGURATION, Path()))
    yield structlog.get_logger("engine.test")
    structlog.configure(**before)


@pytest.mark.parametrize("form", ["text", "json"])
def test_long_texts_of_others_are_cut(
    log: structlog.stdlib.BoundLogger, form: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JMS_BRIDGE_LOG", form)
    logging.setup(loads(CONFIGURATION, Path()))
    long = "x" * (LONGEST_LINE - 4) + " hunter2 " + "y" * 900_000
    log.warning("message rejected", message=long, listed=[long, "short"], count=3)
    said = capsys.readouterr().err
    assert "short" in said
    assert "hun" not in said
    assert said.count(" characters in all)") == 2
    assert len(said) < 3 * LONGEST_LINE
