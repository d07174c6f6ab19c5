"""Which processes a configuration asks for."""

import pytest

from engine.errors import UsageError
from engine.supervision.parts import Part, Stage, parts
from engine.topologies.section import TopologiesConfig
from routes.config import loads
from routes.errors import ConfigurationError

ROUTE = """
bridge.id=test
routes.a.name=a
routes.a.in.include=msg.address==a
routes.a.out.topic=topic-a
source.orders.type=stomp
source.orders.destinations=queue:a
source.prices.type=stomp
source.prices.url=stomp://127.0.0.1:1
source.prices.destinations=topic:prices
source.prices.workers=2
"""
EMBEDDED = loads(ROUTE)
EXTERNAL = loads(ROUTE + "kafka.bootstrap.servers=127.0.0.1:2\nsource.orders.url=stomp://127.0.0.1:1\nembedded=off\n")


def test_everything_embedded_starts_brokers_first_and_waits_for_them() -> None:
    assert parts(EMBEDDED) == (
        Part("kafka", "kafka", Stage.BROKER),
        Part("artemis", "artemis", Stage.BROKER),
        Part("router", "router", Stage.ROUTER, needs=("kafka",)),
        Part("source:orders", "source:orders", Stage.SOURCE, needs=("kafka", "artemis")),
        Part("source:prices", "source:prices", Stage.SOURCE, needs=("kafka",)),
        Part("source:prices/2", "source:prices", Stage.SOURCE, worker=2, needs=("kafka",)),
    )


def test_existing_servers_leave_nothing_to_start_and_nothing_to_wait_for() -> None:
    assert [(part.name, part.needs) for part in parts(EXTERNAL)] == [
        ("router", ()),
        ("source:orders", ()),
        ("source:prices", ()),
        ("source:prices/2", ()),
    ]


def test_sinks_stop_after_the_router_and_start_the_broker_they_need() -> None:
    sinks = "sink.nats.type=nats\nsink.nats.workers=2\nsink.other.type=nats\nsink.other.url=nats://127.0.0.1:3\n"
    chosen = parts(loads(ROUTE + sinks))
    assert Part("nats", "nats", Stage.BROKER) in chosen
    assert chosen[-3:] == (
        Part("sink:nats", "sink:nats", Stage.SINK, needs=("kafka", "nats")),
        Part("sink:nats/2", "sink:nats", Stage.SINK, worker=2, needs=("kafka", "nats")),
        Part("sink:other", "sink:other", Stage.SINK, needs=("kafka",)),
    )
    assert sorted(Stage) == [Stage.SOURCE, Stage.ROUTER, Stage.TOPOLOGY, Stage.SINK, Stage.BROKER]
    assert [part.name for part in parts(loads(ROUTE + sinks), "sinks")] == ["sink:nats", "sink:nats/2", "sink:other"]


def test_a_topology_is_a_part_of_its_own() -> None:
    config = loads(ROUTE + "topologies.totals.build=shop.totals:build\ntopologies.totals.mode=batch\n")
    assert Part("topology:totals", "topology:totals", Stage.TOPOLOGY, needs=("kafka",)) in parts(config)
    assert [part.name for part in parts(config, "topologies")] == ["topology:totals"]
    assert [part.name for part in parts(config, "topology:totals")] == ["topology:totals"]
    assert (
        config.section(TopologiesConfig)[0].mode,
        config.section(TopologiesConfig)[0].guarantee,
    ) == ("batch", "exactly_once")


@pytest.mark.parametrize(
    "wrong", ["topologies.t.mode=batch", "topologies.t.build=shop", "topologies.t.buld=shop:build"]
)
def test_a_wrong_topology_is_a_fault_at_its_line(wrong: str) -> None:
    with pytest.raises(ConfigurationError, match=r"topologies\.t|topology 't'|is not a function"):
        loads(ROUTE + wrong + "\n")


@pytest.mark.parametrize(
    ("only", "names"),
    [
        ("router", ["router"]),
        ("sources", ["source:orders", "source:prices", "source:prices/2"]),
        ("source:prices", ["source:prices", "source:prices/2"]),
        ("kafka", ["kafka"]),
    ],
)
def test_one_part_alone_waits_for_nothing_that_runs_elsewhere(only: str, names: list[str]) -> None:
    chosen = parts(EMBEDDED, only)
    assert [part.name for part in chosen] == names
    assert {part.needs for part in chosen} == {()}


@pytest.mark.parametrize("only", ["source:nothing", "nothing", "artemis"])
def test_a_part_that_is_not_there_is_told_with_those_that_are(only: str) -> None:
    with pytest.raises(UsageError) as caught:
        parts(EXTERNAL, only)
    assert str(caught.value) == (
        f"--only {only}: there is no such part; expected one of router, source:orders, source:prices, sources"
    )
