"""`jms-bridge status` and `lag`, asked of an HTTP server that has figures and no bridge behind it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from prometheus_client import CollectorRegistry
from rich.console import Console

from engine.embedded import free_ports
from engine.telemetry.http import HttpServer, application, earlier_reading
from engine.telemetry.http_section import HttpConfig
from engine.telemetry.meters import Figures
from engine.telemetry.metrics import (
    DEAD_LETTER_AGE,
    DEAD_LETTERS,
    JOURNALED,
    LAG_RECORDS,
    LAG_SECONDS,
    LATENCY_AVERAGE,
    PROCESS_MEMORY,
    RESTARTS,
    SINK_LAG,
    SOURCE_WAITING,
    UNMATCHED_BY_ADDRESS,
)
from engine.telemetry.peers import Peers
from engine.telemetry.report import ComponentReport, MetricSample, PeerReport
from engine.telemetry.status import State, Status, StatusBoard
from routes.sections import HELD
from tests.commands import finished

CONFIGURATION = """\
bridge.id=payments
kafka.bootstrap.servers=127.0.0.1:{kafka}
http.address=127.0.0.1:{port}
source.jms.type=stomp
source.jms.url=stomp://127.0.0.1:1
source.jms.destinations=queue:orders
sink.nats.type=nats
sink.nats.url=nats://127.0.0.1:1
routes.orders.in.include=msg.address==orders
routes.orders.out.topic=nats:orders
"""
PARTS = ("router", "source:jms", "sink:nats")
TOLD = {"hash": "0123456789abcdef", "reload": {"success": True, "time": "2026-11-22T06:00:00+00:00"}}

Call = Callable[..., tuple[int, str, str]]


@dataclass
class Bridge:
    file: Path
    board: StatusBoard
    figures: Figures
    told: dict[str, object]
    standing: Standing
    kept: list[MetricSample]
    """Earlier readings, of which the last is shown; none by default."""


class Standing:
    """A bridge that leads, until a test says otherwise."""

    leads = True
    has_leader = True
    stands_by = False
    why_not = ""


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return lambda *arguments: finished(capsys, *arguments)


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[Bridge]:
    board, registry, figures = StatusBoard(PARTS), CollectorRegistry(), Figures()
    registry.register(figures)
    for name in PARTS:
        board.put(Status(name, State.READY, f"{name} is well"))
    told: dict[str, object] = dict(TOLD)
    standing = Standing()
    kept: list[MetricSample] = [MetricSample(time.monotonic())]
    routes = [earlier_reading(lambda: kept[-1])]
    app = application(board, registry, standing, configuration=lambda: told, pages=routes)
    with HttpServer(HttpConfig("127.0.0.1", 0), app) as server:
        file = tmp_path / "jms-bridge.properties"
        file.write_text(CONFIGURATION.format(port=urlsplit(server.url).port, kafka=free_ports(1)[0]))
        yield Bridge(file, board, figures, told, standing, kept)


def test_a_look_at_a_bridge_that_is_ready(bridge: Bridge, call: Call) -> None:
    bridge.figures.set(JOURNALED, 5, "jms")
    bridge.figures.set(SINK_LAG, 1234, "sink:nats")
    bridge.figures.set(RESTARTS, 2, "router")
    bridge.figures.set(PROCESS_MEMORY, 3 * 1024**3, "router")
    bridge.figures.set(DEAD_LETTERS, 7, "key-not-found")
    bridge.figures.set(DEAD_LETTER_AGE, 7200)
    code, out, error = call("status", "--once", "-c", str(bridge.file))
    assert (code, error) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert "ready" in lines[0]
    assert "dead letters 7 open, oldest 2 h" in out
    assert "configuration 0123456789abcdef" in out
    assert ["router", "ready", "2", "3.0", "GiB", "router", "is", "well"] in lines
    assert ["source:jms", "ready", "0/s", "\N{EN DASH}", "source:jms", "is", "well"] in lines
    assert ["sink:nats", "ready", "1,234", "sink:nats", "is", "well"] in lines


def test_messages_that_wait_at_the_system_of_a_source_are_shown_at_its_first_worker(bridge: Bridge, call: Call) -> None:
    bridge.board.put(Status("source:jms/2", State.READY, "well"))
    bridge.figures.set(SOURCE_WAITING, 12_345, "jms")
    lines = [line.split() for line in call("status", "--once", "-c", str(bridge.file))[1].splitlines()]
    assert ["source:jms", "ready", "12,345", "source:jms", "is", "well"] in lines
    assert ["source:jms/2", "ready", "well"] in lines


def test_paused_routes_and_their_held_messages_are_shown_apart(bridge: Bridge, call: Call) -> None:
    bridge.told["paused"] = {"orders": "paused by ann@host"}
    bridge.figures.set(DEAD_LETTERS, 7, "key-not-found")
    bridge.figures.set(DEAD_LETTERS, 1200, HELD)
    code, out, _ = call("status", "--once", "-c", str(bridge.file))
    assert code == 0
    assert "ready, paused: route:orders" in out
    assert "dead letters 7 open" in out
    assert "held 1,200" in out


def test_addresses_that_no_route_takes_are_shown_as_far_as_there_is_room(
    bridge: Bridge, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no route took" not in call("status", "--once", "-c", str(bridge.file))[1]
    for address, count in (("audit", 3), ("refunds", 1041), ("", 1), ("x" * 100, 2), ("\x1b[31m", 4), ("none", 0)):
        bridge.figures.set(UNMATCHED_BY_ADDRESS, count, address)
    _, out, _ = call("status", "--once", "-c", str(bridge.file))
    (line,) = [line for line in out.splitlines() if line.startswith("no route")]
    assert line.startswith(r"no route took 1,051: 1,041 to refunds, 4 to \x1b[31m, 3 to audit, 2 to xxx")
    assert line.endswith(", 1 to (none)")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("engine.cli.status.console", lambda: Console(width=80))
    _, out, _ = call("status", "--once", "-c", str(bridge.file))
    (line,) = [line for line in out.splitlines() if line.startswith("no route")]
    assert len(line) <= 80
    assert line.endswith(", …")
    _, out, _ = call("status", "--json", "-c", str(bridge.file))
    assert json.loads(out)["unmatched"][0] == {"address": "refunds", "messages": 1041}


def test_rates_since_the_reading_that_the_bridge_kept(bridge: Bridge, call: Call) -> None:
    bridge.figures.set(JOURNALED, 500, "jms")
    bridge.kept.append(MetricSample(time.monotonic() - 10.0, {JOURNALED.name: (({"source": "jms"}, 200.0),)}))
    bridge.kept[-1] = replace(bridge.kept[-1], values={**bridge.kept[-1].values, LATENCY_AVERAGE.name: (({}, nan),)})
    code, out, _ = call("status", "--json", "-c", str(bridge.file))
    assert code == 0
    report = json.loads(out)
    assert report["received"] == pytest.approx(30.0, rel=0.05)
    assert report["parts"][1]["rate"] == pytest.approx(30.0, rel=0.05)


def test_one_that_is_not_ready_says_what_it_waits_for_and_exits_with_1(bridge: Bridge, call: Call) -> None:
    bridge.board.put(Status("sink:nats", State.DEGRADED, "nats://127.0.0.1:1 is \x1b[31mgone"))
    code, out, _ = call("status", "-c", str(bridge.file))
    assert code == 1
    assert "not ready, waiting for sink:nats" in out
    assert r"is \x1b[31mgone" in out


def part(name: str, state: str) -> ComponentReport:
    return ComponentReport(name, state, "well", None, None, 0.0, None, None)


def test_parts_on_other_hosts_are_shown_and_count(tmp_path: Path, call: Call) -> None:
    found: list[PeerReport] = [PeerReport("edge-1:8480", True, 0.2, "", True, (part("source:jms", "ready"),))]

    class KnownPeers(Peers):
        def reports(self) -> tuple[PeerReport, ...]:
            return tuple(found)

    board, registry = StatusBoard(["router"]), CollectorRegistry()
    board.put(Status("router", State.READY, "well"))
    app = application(
        board,
        registry,
        configuration=lambda: dict(TOLD),
        peers=KnownPeers("b", HttpConfig("127.0.0.1", 1)),
    )
    with HttpServer(HttpConfig("127.0.0.1", 0), app) as server:
        file = tmp_path / "jms-bridge.properties"
        text = CONFIGURATION.format(port=urlsplit(server.url).port, kafka=free_ports(1)[0])
        file.write_text(text + "http.peers=edge-1:8480, edge-2:8480\n")
        code, out, _ = call("status", "--once", "-c", str(file))
        lines = [line.split() for line in out.splitlines()]
        assert code == 0
        assert ["router", "this", "host", "ready", "well"] in lines
        assert ["source:jms", "edge-1:8480", "ready", "\N{EN DASH}", "well"] in lines
        found += [PeerReport("edge-2:8480", False, 75, "no \x1broute", False, (part("sink:nats", "unreachable"),))]
        code, out, _ = call("status", "--once", "-c", str(file))
        assert code == 1
        assert "not ready, waiting for edge-2:8480" in out
        assert r"edge-2:8480: has not answered for 1 min 15 s: no \x1broute" in out
        code, out, _ = call("status", "--json", "-c", str(file))
        assert [(each["address"], each["reachable"]) for each in json.loads(out)["peers"]] == [
            ("edge-1:8480", True),
            ("edge-2:8480", False),
        ]


def test_a_bridge_that_runs_since_before_the_file_named_peers_is_shown_alone(bridge: Bridge, call: Call) -> None:
    with bridge.file.open("a") as file:
        file.write("http.peers=edge-1:8480\n")
    code, out, error = call("status", "--once", "-c", str(bridge.file))
    assert (code, error) == (0, "")
    assert "edge-1" not in out


def test_one_that_stands_by_is_well_only_while_another_one_leads(bridge: Bridge, call: Call) -> None:
    bridge.board.put(Status("router", State.STARTING, "waiting to lead"))
    bridge.standing.leads, bridge.standing.stands_by = False, True
    bridge.standing.why_not = "another bridge leads (h)"
    code, out, _ = call("status", "--once", "-c", str(bridge.file))
    assert (code, "stands by, another bridge leads (h)" in out) == (0, True)
    bridge.standing.has_leader = bridge.standing.stands_by = False
    code, out, _ = call("status", "--once", "-c", str(bridge.file))
    assert (code, "not ready, waiting for router, a bridge that leads" in out) == (1, True)


@pytest.mark.parametrize("width", [70, 80, 100, 119, 120, 175])
def test_no_width_of_the_terminal_cuts_states_rates_and_faults(
    width: int, bridge: Bridge, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "amqp://broker.example:5672 cannot be reached: [Errno 111] Connection refused; trying again in 8 s " * 2
    bridge.figures.set(JOURNALED, 5, "jms")
    bridge.figures.set(SINK_LAG, 1234567, "sink:nats")
    bridge.figures.set(PROCESS_MEMORY, 3.5 * 1024**3, "router")
    bridge.board.put(Status("sink:nats", State.DEGRADED, why.strip()))
    bridge.board.put(Status("router", State.READY, "4 routes, realtime " * 20))
    monkeypatch.setattr("engine.cli.output._WIDE", width)
    _, out, _ = call("status", "--once", "-c", str(bridge.file))
    lines = out.splitlines()
    assert max(map(len, lines)) <= width
    rows = {line.split()[0]: line.split() for line in lines if line.strip()}
    assert rows["part"][1:7] == ["state", "messages", "waiting", "restarts", "cores", "memory"]
    assert rows["source:jms"][1:3] == ["ready", "0/s"]
    assert rows["router"][1:4] == ["ready", "3.5", "GiB"]
    assert "degraded" in out
    assert "1,234,567" in out
    assert set(why.split()) <= set(out.split())


def test_of_many_parts_the_first_are_shown_and_those_that_do_not_work_before_all(
    bridge: Bridge, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        state = State.DEGRADED if number in (3, 39) else State.READY
        bridge.board.put(Status(f"source:broker-{number:02}-region", state, "stomp://broker refuses"))
    monkeypatch.setattr("engine.cli.output._WIDE", 80)
    code, out, _ = call("status", "--once", "-c", str(bridge.file))
    lines = out.splitlines()
    assert code == 1
    assert max(map(len, lines)) <= 80
    table = lines[next(number for number, line in enumerate(lines) if line.startswith("part")) + 1 :]
    assert table[0].startswith("source:broker-03-region  degraded")
    assert table[1].startswith("source:broker-39-region  degraded")
    assert "and 23 more, all of them ready; --all shows them" in lines
    assert len(lines) < 32
    _, out, _ = call("status", "--once", "--all", "-c", str(bridge.file))
    assert "source:broker-38-region" in out
    assert "more" not in out


def test_a_reload_that_was_refused_is_reported(bridge: Bridge, call: Call) -> None:
    bridge.told["reload"] = {"success": False, "time": "2026-11-22T07:00:00+00:00", "why": "3 errors"}
    assert "the last reload was refused: 3 errors" in call("status", "--once", "-c", str(bridge.file))[1]


def test_json_is_one_value_with_all_of_it(bridge: Bridge, call: Call) -> None:
    bridge.figures.set(LAG_RECORDS, 3, "0")
    bridge.figures.set(LATENCY_AVERAGE, nan)
    code, out, _ = call("status", "--json", "-c", str(bridge.file))
    found = json.loads(out)
    assert "NaN" not in out
    assert found["latency_seconds"] is None
    assert (code, found["ready"], found["bridge"], found["journal_lag"]) == (0, True, "payments", 3)
    assert [part["component"] for part in found["parts"]] == list(PARTS)


def test_without_a_bridge_it_says_where_it_asked(tmp_path: Path, call: Call) -> None:
    file = tmp_path / "jms-bridge.properties"
    port, kafka = free_ports(2)
    file.write_text(CONFIGURATION.format(port=port, kafka=kafka))
    code, out, error = call("status", "--once", "-c", str(file))
    assert (code, out) == (6, "")
    assert f"no bridge answers at http://127.0.0.1:{port}: Connection refused" in error


def test_a_login_that_is_not_taken_is_refused_clearly(tmp_path: Path, call: Call) -> None:
    served = application(StatusBoard(PARTS), CollectorRegistry())
    with HttpServer(HttpConfig("127.0.0.1", 0, token="right"), served) as server:
        file = tmp_path / "jms-bridge.properties"
        text = CONFIGURATION.format(port=urlsplit(server.url).port, kafka=1) + "http.token=wrong\n"
        file.write_text(text)
        code, _, error = call("status", "--once", "-c", str(file))
    assert code == 4
    assert "does not take the login of this configuration" in error
    assert "wrong" not in error


def test_what_waits_by_partition_and_sink(bridge: Bridge, call: Call) -> None:
    for partition, records in (("0", 3), ("1", 4)):
        bridge.figures.set(LAG_RECORDS, records, partition)
    bridge.figures.set(LAG_SECONDS, 65)
    bridge.figures.set(SINK_LAG, 10, "sink:nats")
    code, out, _ = call("lag", "-c", str(bridge.file))
    assert code == 0
    assert [line.split() for line in out.splitlines()[1:]] == [
        ["router", "jms-bridge.journal:0", "3", "1", "min", "5", "s"],
        ["router", "jms-bridge.journal:1", "4", "1", "min", "5", "s"],
        ["sink:nats", "jms-bridge.sink.nats", "10"],
        ["all", "17"],
    ]
    assert [json.loads(line)["records"] for line in call("lag", "--json", "-c", str(bridge.file))[1].splitlines()] == [
        3,
        4,
        10,
    ]
