"""A bridge that has just been started for the first time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.integration.bridge_process import run_to_its_end, wait, wait_arrived

if TYPE_CHECKING:
    from tests.integration.bridge_process import Bridge

TOTAL = "jmsbridge_routed_messages_total"


def test_a_start_tells_what_runs_where_and_what_to_try(bridge: Bridge) -> None:
    wait(lambda: "Ctrl-C stops" in bridge.output, lambda: bridge.output)
    lines = bridge.output.splitlines()
    assert re.fullmatch(r"jms-bridge \S+  test  .*/jms-bridge\.properties", lines[0])
    assert lines[1] == "starting kafka, artemis, router, source:jms"
    for name in ("kafka      ", "artemis    ", "router     ", "source:jms "):
        assert any(line.startswith(f"  ✓ {name} ") for line in lines), bridge.output
    assert f"status page and metrics on {bridge.url}" in bridge.output
    assert '  try  jms-bridge send queue:orders --property region=emea "hello"\n' in bridge.output
    assert "       jms-bridge receive kafka:routed\n" in bridge.output
    assert lines[-1] == "Ctrl-C stops"


def test_messages_arrive_and_the_figures_equal_what_is_in_the_topics(bridge: Bridge) -> None:
    bridge.send(range(1000, 1050))
    bridge.send(range(1), number="not a key!")
    wait_arrived(bridge, *range(1000, 1050))
    wait(lambda: bridge.metric("jmsbridge_failed_messages_total", reason="key-invalid") == 1)
    wait(lambda: bridge.metric(TOTAL, route="orders", topic="routed") == 50)
    wait(lambda: bridge.metric("jmsbridge_source_acknowledged_messages_total", source="jms") == 51)
    assert bridge.metric("jmsbridge_source_journaled_messages_total") == 51
    assert bridge.metric("jmsbridge_routing_latency_seconds_count") == 50
    assert len(bridge.records("routed")) == 50
    assert len(bridge.records("dead")) == 1
    wait(lambda: bridge.metric("jmsbridge_journal_lag_records") == 0)


def test_a_second_bridge_on_the_same_data_is_refused_in_one_line(bridge: Bridge) -> None:
    code, out, err = run_to_its_end(bridge.file)
    assert bridge.process
    assert (code, out) == (3, "")
    assert err == (
        f"jms-bridge: another bridge (process {bridge.process.pid}) runs kafka on {bridge.file.parent}/var; "
        "stop it, or set embedded.data to another folder\n"
    )
