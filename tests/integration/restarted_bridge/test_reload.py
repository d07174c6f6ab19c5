"""The configuration of a bridge is changed while messages flow: nothing is lost, nothing comes twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from engine.find.timeline import timeline
from engine.kafka.clients import KafkaClients
from engine.kafka.reader import KafkaTopicReader
from routes.config import load
from tests.integration.bridge_process import descendants, part, wait
from tests.integration.restarted_bridge.conftest import TO_A, TO_B
from tests.processes import gone

if TYPE_CHECKING:
    from tests.integration.restarted_bridge.conftest import Editor


def test_routes_change_under_load_and_no_message_is_lost_or_doubled(editor: Editor) -> None:
    pid = part(editor.bridge, "router")
    old = editor.status()["hash"]
    with editor.load():
        for routes in (TO_B, TO_A):
            editor.wait_for_some()
            editor.reload(routes)
        editor.wait_for_some()
    a, b = editor.wait_for_all()
    assert min(len(a), len(b)) > 0
    assert editor.status()["hash"] != old
    assert editor.status()["reload"]["success"] is True
    assert editor.bridge.metric("jmsbridge_config_info", config_hash=str(editor.status()["hash"])) == 1
    assert editor.bridge.metric("jmsbridge_config_info") == 1
    assert part(editor.bridge, "router") == pid
    assert editor.bridge.metric("jmsbridge_component_restarts_total") == 0
    wait(lambda: editor.bridge.metric("jmsbridge_routed_messages_total", route="all") == editor.number)


def test_each_message_is_explained_by_the_routes_of_its_time(editor: Editor) -> None:
    with editor.load():
        for routes in (TO_B, TO_A, TO_B):
            editor.reload(routes)
            editor.wait_for_some()
    editor.wait_for_all()
    config = load(editor.bridge.file)
    for topic in ("a", "b"):
        with KafkaTopicReader(KafkaClients(config.kafka_access), topic) as reader:
            published = list(reader.present())
        # Those at both ends of a generation are among them.
        for located in (published[0], *published[:: len(published) // 8 + 1], published[-1]):
            events = timeline(config, located.position).events
            assert [event.record for event in events if event.what == "published"] == [located.position], events
            assert any("by the routes in force from" in event.detail for event in events), events
            assert [event.what for event in events].count("today") == (topic == "a"), events
    editor.reload(TO_A)


def test_messages_after_a_reload_go_by_the_new_routes(editor: Editor) -> None:
    editor.reload(TO_B)
    sent = editor.sent_now(20)
    _, b = editor.wait_for_all()
    assert sent <= set(b)


def test_a_faulty_file_is_refused_while_messages_flow_and_parts_that_die_do_not_read_it(editor: Editor) -> None:
    in_force = editor.status()["hash"]
    with editor.load():
        why = editor.refused(TO_A.replace("in.include", "in.inclde"))
        assert "error: unknown key 'routes.all.in.inclde' (did you mean 'routes.all.in.include'?)" in why
        assert f"{editor.bridge.file}:" in why
        for name in ("source:jms", "router"):
            os.kill(part(editor.bridge, name), signal.SIGKILL)
        wait(lambda: editor.bridge.metric("jmsbridge_component_restarts_total", component="router") >= 1)
        editor.bridge.wait_ready()
    assert editor.status()["hash"] == in_force
    sent = editor.sent_now(5)
    _, b = editor.wait_for_all()
    assert sent <= set(b)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("journal.retention=1d\nrouter.interval=20s\n", "journal.retention, router.interval cannot be changed while"),
        ("sink.nats.type=nats\n", "the change would start the embedded nats, which only a restart of the bridge does"),
        (
            "routing.create-topics=false\nroutes.x.in.include=msg.address==x\nroutes.x.out.topic=gone\n",
            "topic 'gone' (route 'x'): does not exist",
        ),
    ],
)
def test_what_a_running_bridge_cannot_take_is_refused_with_the_reason(editor: Editor, more: str, why: str) -> None:
    assert why in editor.refused(TO_A + more)
    assert "Traceback" not in editor.bridge.output


def test_sources_and_sinks_come_and_go_alone(editor: Editor) -> None:
    before = {name: part(editor.bridge, name) for name in ("router", "source:jms", "kafka")}
    sink = "sink.back.type=stomp\nroutes.out.in.include=msg.address==out\nroutes.out.out.topic=back:queue/orders\n"
    source = "source.out.type=stomp\nsource.out.destinations=queue:out\n"
    editor.reload(f"{TO_A}{sink}{source}")
    editor.bridge.wait_ready()
    assert {"sink:back", "source:out"} <= set(editor.bridge.ready()["components"])
    editor.bridge.send(range(900_000, 900_010), "out")
    wait(lambda: editor.bridge.metric("jmsbridge_sink_delivered_messages_total", sink="back") == 10)
    assert {name: part(editor.bridge, name) for name in before} == before
    editor.reload(TO_A)
    assert not {"sink:back", "source:out"} & set(editor.bridge.ready()["components"])
    assert editor.bridge.metric("jmsbridge_component_up", component="sink:back") == 0
    assert {name: part(editor.bridge, name) for name in before} == before


def test_a_part_that_cannot_work_by_a_new_configuration_brings_the_old_one_back(editor: Editor) -> None:
    old = editor.status()["hash"]
    (editor.bridge.file.parent / "ca.pem").write_text("no certificate")
    url = f"stomp+ssl://127.0.0.1:{editor.bridge.settings['embedded.stomp.port']}"
    editor.write(
        f"{TO_B}source.two.type=stomp\nsource.two.url={url}\nsource.two.tls.ca=ca.pem\nsource.two.destinations=queue:x\n"
    )
    with editor.load():
        editor.hang_up()
        wait(lambda: "source:two" in str(editor.status()["reload"].get("why")), lambda: editor.bridge.output)
        assert editor.status()["reload"]["success"] is False
        assert "source:two" not in editor.bridge.ready()["components"]
        editor.bridge.wait_ready()
    assert editor.status()["hash"] == old
    sent = editor.sent_now(5)
    a, _ = editor.wait_for_all()
    assert sent <= set(a)


def test_a_watched_file_is_read_again_when_it_has_changed(editor: Editor) -> None:
    editor.reload(f"{TO_A}reload.watch=true\n")
    taken = editor.bridge.output.count("configuration in force")
    replacement = editor.bridge.file.with_suffix(".new")
    replacement.write_text(f"{editor.base}{TO_B}")
    replacement.replace(editor.bridge.file)
    wait(lambda: editor.bridge.output.count("configuration in force") > taken, lambda: editor.bridge.output)
    sent = editor.sent_now(5)
    _, b = editor.wait_for_all()
    assert sent <= set(b)


@pytest.mark.parametrize("victim", ["router", "bridge"])
@pytest.mark.kills
def test_a_kill_in_the_middle_of_a_reload_loses_and_doubles_nothing(editor: Editor, victim: str) -> None:
    for delay, routes in ((0.2, TO_A), (1.0, TO_B), (1.8, TO_A)):
        editor.bridge.wait_ready()
        bridge = editor.bridge.process
        assert bridge
        with editor.load():
            time.sleep(1)
            editor.write(routes)
            editor.hang_up()
            time.sleep(delay)
            if victim == "router":
                restarts = editor.bridge.metric("jmsbridge_component_restarts_total", component="router")
                os.kill(part(editor.bridge, "router"), signal.SIGKILL)
                wait(
                    lambda before=restarts: (  # type: ignore[misc]
                        editor.bridge.metric("jmsbridge_component_restarts_total", component="router") > before
                    )
                )
        if victim == "bridge":
            started = descendants(bridge.pid)
            bridge.kill()
            bridge.wait()
            wait(lambda started=started: all(gone(pid) for pid in started))  # type: ignore[misc]
            editor.bridge.start()
        editor.bridge.wait_ready()
    editor.wait_for_all()


def test_what_no_route_took_reaches_its_destination_once_after_a_route_was_added(editor: Editor) -> None:
    editor.reload(TO_A.replace("address==load", "address==nothing"))

    def unrouted() -> tuple[float, float]:
        by_reason, by_address = ("jmsbridge_unrouted_messages_total", "jmsbridge_unmatched_messages_total")
        metric = editor.bridge.metric
        return metric(by_reason, reason="unmatched"), metric(by_address, address="load")

    before = unrouted()
    sent = editor.sent_now(10)
    wait(lambda: unrouted() == (before[0] + 10, before[1] + 10), lambda: editor.bridge.output)
    assert "to load" in run_command(editor, "status", "--once")[1]
    editor.reload(TO_A)
    for _ in range(2):
        status, out, err = run_command(editor, "journal", "replay", "--unrouted", "--yes")
        assert status == 0, err
    assert out.count("already replayed to") >= 10
    a, _ = editor.wait_for_all()
    assert sent <= set(a)


def run_command(editor: Editor, *arguments: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "engine", *arguments, "-c", str(editor.bridge.file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout, done.stderr
