"""Routes kept for the next run, in the checkpoint and in Kafka, are read for every system and every recipe."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from engine.router.generation import Generations, Start
from engine.router.past_routes import routes_text
from engine.router.position_store import _encoded, entry_of
from routes.config import load
from routes.config.load import loads_routes
from routes.errors import ConfigurationError
from routes.model import Config
from routes.systems import SYSTEMS

ROOT = Path(__file__).parents[3]
RECIPES = sorted((ROOT / "engine/cli/templates").glob("*.properties"))
HEAD = """\
bridge.id=b1
kafka.bootstrap.servers=127.0.0.1:9092
source.s.type=nats
source.s.url=nats://127.0.0.1:4222
source.s.destinations=in
routing.dead-letter-topic=dead
routing.on-soft-failure=dead-letter
routes.r.in.include=region = 'emea'
"""
SINKS = {
    "stomp": "sink.x.type=stomp\nsink.x.url=stomp+ssl://h:61613\nsink.x.tls.ca=ca.pem\nroutes.r.out.topic=x:queue/a\n",
    "amqp": "sink.x.type=amqp\nsink.x.url=amqp://h:5672\nsink.x.position-queue=p\nroutes.r.out.topic=x:queue/a\n",
    "amqp-listener": "sink.x.type=amqp\nsink.x.listen=amqp://127.0.0.1:5672\nroutes.r.out.topic=x:queue/a\n",
    "jms": (
        "sink.x.type=jms\nsink.x.class-path=client.jar\nsink.x.connection-factory=a.Factory\n"
        "sink.x.reply-to=queue/answers\nroutes.r.out.topic=x:queue/${msg.header.region}\n"
    ),
    "nats": "sink.x.type=nats\nsink.x.url=nats://h:4222\nroutes.r.out.topic=x:a.b\n",
    "dropbox": "sink.x.type=dropbox\nsink.x.root=out\nroutes.r.out.topic=x:queue/a\n",
    "kafka": "routes.r.out.topic=kafka:orders\n",
}


def kept_ways(config: Config, folder: Path) -> list[Start]:
    """The start of a run, as the checkpoint and as Kafka's note give it back."""
    start = Start("j", "id", {0: 1}, {}, config.bridge_id, routes_text(config.text), "run")
    generations = Generations(folder / "checkpoint")
    generations.create(start)
    newest = generations.newest()
    entry = entry_of(_encoded({**asdict(start), "host": "h", "path": "p"}), None, "state")
    assert newest is not None
    assert entry is not None
    return [newest.start, entry.progress.start]


def check(config: Config, folder: Path) -> None:
    for start in kept_ways(config, folder / "run"):
        then = loads_routes(start.routes, folder)
        assert then.bridge_id == config.bridge_id
        assert then.routes == config.routes
        assert then.routing == config.routing
        assert [(sink.name, sink.type, sink.topic) for sink in then.sinks] == [
            (sink.name, sink.type, sink.topic) for sink in config.sinks
        ]


def test_every_system_is_among_the_sinks() -> None:
    assert set(SYSTEMS) <= set(SINKS)


@pytest.mark.parametrize("sink", SINKS)
def test_kept_routes_to_each_system_are_read_without_its_other_keys(tmp_path: Path, sink: str) -> None:
    check(loads_routes(HEAD + SINKS[sink]), tmp_path)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_kept_routes_of_each_recipe_are_read(tmp_path: Path, recipe: Path) -> None:
    # What a user uncomments is read as well: the examples of routes and sinks in the file to begin with.
    lines = [line[1:] if line.startswith(("#routes.", "#sink.")) else line for line in recipe.read_text().splitlines()]
    # The jars of most recipes are not on this machine, so the file is read without the checks, as the extract is.
    check(loads_routes("\n".join(lines)), tmp_path)


def test_lines_with_passwords_and_the_key_of_seals_are_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "jms-bridge.properties"
    file.write_text(HEAD + SINKS["nats"] + "sink.x.username=u\nsink.x.password=hidden-secret\n")
    assert "hidden-secret" not in routes_text(load(file).text)


def test_a_kept_line_that_is_not_understood_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"unknown key 'routes\.r\.of\.later\.versions'"):
        loads_routes("bridge.id=b\nroutes.r.in.include=TRUE\nroutes.r.out.topic=t\nroutes.r.of.later.versions=1\n")
