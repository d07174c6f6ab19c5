"""What a user sees of a start, as plain text."""

import io
import re

import pytest
import structlog.testing
from rich.console import Console

from engine.supervision.example import try_out
from engine.supervision.parts import parts
from engine.supervision.progress import LoggedProgress, Progress
from engine.telemetry.status import State, Status
from routes.config import loads

CONFIG = """
bridge.id=bridge-1
routes.emea.name=emea
routes.emea.in.include=msg.address==orders && region = 'emea' AND JMSType = 'o''clock'
routes.emea.in.exclude=test = TRUE
routes.emea.out.topic=orders
source.jms.type=stomp
source.jms.destinations=topic:prices, queue:orders
"""


def test_a_start_is_told_line_by_line_and_ends_with_what_to_try() -> None:
    config = loads(CONFIG)
    output = io.StringIO()
    progress = Progress(config, parts(config), "http://127.0.0.1:8480", Console(file=output, width=200))
    states = {part.name: Status(part.name, State.DOWN) for part in parts(config)}

    def tell(name: str, state: State, detail: str) -> None:
        states[name] = Status(name, state, detail)
        progress.show(list(states.values()))

    progress.begin()
    tell("kafka", State.STARTING, "")
    tell("kafka", State.READY, "127.0.0.1:9092 [here]")
    tell("artemis", State.READY, "stomp://127.0.0.1:61613")
    tell("router", State.READY, "1 route")
    tell("source:jms", State.DEGRADED, "no connection")
    tell("source:jms", State.READY, "topic:prices, queue:orders")
    tell("source:jms", State.READY, "topic:prices, queue:orders")
    text = re.sub(r"\d+\.\d s", "N s", output.getvalue())
    assert text.splitlines()[1:] == [
        "starting kafka, artemis, router, source:jms",
        "  ✓ kafka       127.0.0.1:9092 [here]  N s",
        "  ✓ artemis     stomp://127.0.0.1:61613  N s",
        "  ✓ router      1 route  N s",
        "  ! source:jms  degraded: no connection  N s",
        "  ✓ source:jms  topic:prices, queue:orders  N s",
        "ready after N s, status page and metrics on http://127.0.0.1:8480",
        "  try  jms-bridge send queue:orders --property region=emea --header 'JMSType=o'\"'\"'clock' \"hello\""
        + f" -c {config.path}" * (config.path.name != "jms-bridge.properties"),
        "       jms-bridge receive kafka:orders" + f" -c {config.path}" * (config.path.name != "jms-bridge.properties"),
        "Ctrl-C stops",
    ]


def test_a_bridge_that_stands_by_says_so_once() -> None:
    config = loads(CONFIG)
    output = io.StringIO()
    progress = Progress(config, parts(config), "http://127.0.0.1:8480", Console(file=output, width=200))
    for why in ("", "another bridge leads (h, process 7)", "another bridge leads (h, process 7)", "", ""):
        progress.standing(why)
    assert output.getvalue() == "  - standby: another bridge leads (h, process 7)\n"


def test_what_to_try_leaves_out_a_message_that_no_route_would_take() -> None:
    config = loads(CONFIG.replace("region = 'emea'", "region LIKE '%a'"))
    assert [command.split()[1] for command in try_out(config)] == ["receive"]


SINKS = """
bridge.id=bridge-1
source.jms.type=stomp
source.jms.destinations=queue:orders
source.in.type=nats
source.in.destinations=prices.>
sink.out.type=nats
sink.archive.type=stomp
sink.archive.reply-to=queue:replies
"""


@pytest.mark.parametrize(
    ("include", "target", "commands"),
    [
        (
            "msg.address==orders",
            "archive:queue/old",
            ['send queue:orders "hello"', "receive archive:queue/old"],
        ),
        (
            "msg.address==orders",
            "nats:orders.${msg.header.region}",
            ["receive out:orders.any", 'send queue:orders --property region=any "hello"'],
        ),
        (
            "msg.address LIKE 'prices.%' AND region='eu'",
            "archive:topic/${msg.address}.${msg.header.region}",
            ["receive archive:topic/prices.any.eu", 'send in:prices.any --property region=eu "hello"'],
        ),
        ("a > 1", "nats:orders", ["receive out:orders"]),
        ("a > 1", "nats:orders.${msg.header.region}", []),
    ],
)
def test_what_to_try_with_sinks_begins_with_receiving_where_nobody_keeps_messages(
    include: str, target: str, commands: list[str]
) -> None:
    config = loads(f"{SINKS}routes.r.in.include={include}\nroutes.r.out.topic={target}\n")
    flag = f" -c {config.path}" * (config.path.name != "jms-bridge.properties")
    assert try_out(config) == [f"jms-bridge {command}{flag}" for command in commands]


def test_with_a_log_for_programs_all_of_it_is_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    config = loads(CONFIG)
    with structlog.testing.capture_logs() as logged:
        progress = LoggedProgress(config, parts(config), "http://127.0.0.1:8480")
        progress.begin()
        progress.standing("another leads")
        progress.show([Status("router", State.DEGRADED, "Kafka is gone")])
        progress.show([Status(part.name, State.READY, "well") for part in parts(config)])
        progress.stopping()
        progress.end()
    assert [(each["log_level"], each["event"]) for each in logged] == [
        ("info", "bridge starts"),
        ("info", "bridge stands by"),
        ("warning", "part is degraded"),
        *[("info", "part is ready")] * len(parts(config)),
        ("info", "bridge is ready"),
        ("info", "bridge stops"),
    ]
    degraded = {"component": "router", "state": "degraded", "detail": "Kafka is gone"}
    assert degraded.items() <= logged[2].items()
    assert capsys.readouterr().out == ""
