"""`jms-bridge doctor` beside a bridge that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.bridge_process import configuration

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.bridge_process import Bridge
    from tests.integration.doctor import Doctor


@pytest.fixture
def file(bridge: Bridge) -> Iterator[Path]:
    """The bridge's, which is as before in the end."""
    text = bridge.file.read_text()
    yield bridge.file
    bridge.file.write_text(text)


def test_the_brokers_of_a_bridge_that_does_not_run_will_be_started(doctor: Doctor, tmp_path: Path) -> None:
    told = doctor(configuration(tmp_path))
    assert told.failed == set()
    assert told.findings["kafka"]["found"] == "the embedded Kafka will be started by the bridge"


def test_a_bridge_that_runs_is_known_and_not_disturbed(doctor: Doctor, bridge: Bridge, file: Path) -> None:
    reconnects = bridge.metric("jmsbridge_source_reconnects_total")
    told = doctor(file)
    assert told.failed == set()
    assert told.findings["bridge"]["found"].endswith(" and is ready")
    assert told.findings["embedded.kafka.port"]["found"].endswith(": the bridge runs")
    assert told.findings["kafka"]["found"].startswith("1 broker at ")
    assert told.findings["source:jms"]["found"].endswith(" takes the login")
    assert bridge.metric("jmsbridge_source_reconnects_total") == reconnects
    assert bridge.get("/ready")[0] == 200

    file.write_text(file.read_text() + "# changed\n")
    changed = doctor(file).findings["bridge"]
    assert changed["state"] == "warning"
    assert changed["found"].endswith(", but not on the file as it is now")

    other = file.with_name("other.properties")
    other.write_text(file.read_text().replace("bridge.id=test", "bridge.id=another"))
    rival = doctor(other)
    assert rival.code == 3
    assert "bridge 'test' runs at " in rival.findings["http.address"]["found"]
    assert "embedded.kafka.port" in rival.failed
