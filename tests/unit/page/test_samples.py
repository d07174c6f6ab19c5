"""Rates from readings of the figures."""

from prometheus_client import CollectorRegistry

from engine.page.view import Samples
from engine.telemetry.meters import Figures
from engine.telemetry.metrics import FAILED, JOURNALED, LAG_RECORDS, ROUTED
from tests.unit.clock import Clock


def made() -> tuple[Figures, Clock, Samples]:
    registry, figures, clock = CollectorRegistry(), Figures(), Clock()
    registry.register(figures)
    return figures, clock, Samples(registry, clock)


def test_before_the_first_readings_nothing_is_known() -> None:
    _, _, samples = made()
    assert samples.traffic.rates(ROUTED, "route") == {}
    assert samples.traffic.rate(JOURNALED) is None
    assert samples.traffic.now.total(LAG_RECORDS) is None
    assert samples.history == ()


def test_what_was_counted_before_the_first_reading_is_no_traffic() -> None:
    figures, clock, samples = made()
    figures.set(ROUTED, 1_000_000, "orders", "topic")
    samples.take()
    clock.now += 5
    samples.take()
    assert samples.traffic.rates(ROUTED, "route") == {"orders": 0.0}


def test_a_rate_is_what_was_added_over_the_last_seconds_by_label() -> None:
    figures, clock, samples = made()
    for total in (0, 50, 100, 150):
        figures.set(ROUTED, total, "orders", "a")
        figures.set(ROUTED, total / 10, "orders", "b")
        figures.set(ROUTED, 0, "idle", "a")
        samples.take()
        clock.now += 5
    assert samples.traffic.rates(ROUTED, "route") == {"orders": 11.0, "idle": 0.0}
    assert samples.traffic.rate(ROUTED) == 11.0
    assert [each[1] for each in samples.history] == [11.0] * 3


def test_a_process_that_began_again_has_no_negative_rate() -> None:
    figures, clock, samples = made()
    for total in (500, 600, 3):
        figures.set(JOURNALED, total, "jms")
        samples.take()
        clock.now += 5
    assert samples.traffic.rates(JOURNALED, "source") == {"jms": 0.0}


def test_readings_and_history_are_bounded() -> None:
    figures, clock, samples = made()
    for total in range(1000):
        figures.set(JOURNALED, total, "jms")
        samples.take()
        clock.now += 5
    assert samples.traffic.now.time - samples.traffic.before.time == 15
    assert len(samples.history) == 60


def test_it_notes_when_a_route_fails() -> None:
    figures, clock, samples = made()
    for total in (7, 7, 8):
        figures.set(FAILED, total, "orders", "kafka:orders", "key-not-found", "skip")
        figures.set(FAILED, 1, "old", "kafka:old", "key-not-found", "skip")
        samples.take()
        clock.now += 5
    assert set(samples.failed_at) == {"orders"}
