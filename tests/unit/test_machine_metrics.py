"""Metrics of disks and certificates: what they show, and that a disk that is gone does not end them."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from engine.doctor.certificates import certificates_of, expiry_times
from engine.doctor.machine import free_bytes
from engine.telemetry.machine import MachineMetrics
from routes.config import load
from tests.certificates import certify

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = """\
bridge.id=b
kafka.bootstrap.servers=127.0.0.1:1
source.s.type=stomp
source.s.url=stomp+ssl://127.0.0.1:1
source.s.destinations=queue:q
source.s.tls.ca=ca.pem
source.s.tls.certificate=bridge.pem
source.s.tls.key=bridge.key
routes.r.in.include=TRUE
routes.r.out.topic=t
"""


def test_a_look_replaces_the_figures() -> None:
    registry, times = CollectorRegistry(), {"old.pem": 1.0}
    metrics = MachineMetrics(registry, lambda: times, lambda: {"embedded.data": 7})
    metrics.look()
    times = {"new.pem": 2.0}
    metrics.look()
    expiry = "jmsbridge_certificate_expiry_timestamp_seconds"
    assert registry.get_sample_value(expiry, {"file": "new.pem"}) == 2.0
    assert registry.get_sample_value(expiry, {"file": "old.pem"}) is None
    assert registry.get_sample_value("jmsbridge_disk_free_bytes", {"folder": "embedded.data"}) == 7


def test_a_disk_that_does_not_answer_delays_no_scrape() -> None:
    registry, asked, answer = CollectorRegistry(), Event(), Event()

    def hang() -> dict[str, int]:
        asked.set()
        answer.wait(30)
        return {"embedded.data": 7}

    with MachineMetrics(registry, dict, hang):
        assert asked.wait(10)
        assert list(registry.collect()) == []
        answer.set()


def test_free_space_is_that_of_the_nearest_folder_that_exists(tmp_path: Path) -> None:
    found = free_bytes({"embedded.data": tmp_path / "not" / "there"})
    assert found["embedded.data"] > 0


def test_each_certificate_of_a_configuration_has_its_end(tmp_path: Path) -> None:
    folder = certify(tmp_path / "made")
    file = folder / "jms-bridge.properties"
    file.write_text(CONFIG)
    found = expiry_times(certificates_of(load(file)))
    assert {path.rpartition("/")[2] for path in found} == {"ca.pem", "bridge.pem"}
    assert found[str(folder / "bridge.pem")] > 1.7e9
