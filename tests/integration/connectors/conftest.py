"""Fixtures for tests of sources against real brokers."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

from engine.topics import ensure_journal
from tests.integration.connectors.proxy import Proxy
from tests.integration.connectors.running import Running, configure
from tests.integration.connectors.stomp_harness import StompHarness

if TYPE_CHECKING:
    from pathlib import Path

    from engine.embedded import EmbeddedArtemis, EmbeddedKafka
    from routes.model import Config
    from tests.integration.connectors.harness import Harness

Configure = Callable[[Mapping[str, str]], "Config"]
Start = Callable[..., Running]

_names = itertools.count(1)


@pytest.fixture
def stomp(artemis: EmbeddedArtemis) -> StompHarness:
    return StompHarness(artemis)


@pytest.fixture(params=["stomp"])
def harness(request: pytest.FixtureRequest) -> Harness:
    """Each connector's broker; the names are those of the fixtures that give it."""
    found: Harness = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def queue() -> str:
    """A name nobody else uses."""
    return f"q{next(_names)}-{uuid.uuid4().hex[:6]}"


@pytest.fixture
def configured(kafka: EmbeddedKafka, tmp_path: Path, queue: str) -> Configure:
    """Makes a configuration with a fresh journal, which exists."""

    def make(settings: Mapping[str, str]) -> Config:
        config = configure(tmp_path, kafka.bootstrap, f"journal-{queue}", settings)
        ensure_journal(config)
        return config

    return make


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts workers; those still running are stopped at the end."""
    running: list[Running] = []

    def begin(config: Config, worker: int = 1) -> Running:
        running.append(Running(config, worker))
        return running[-1]

    yield begin
    for each in running:
        if each.alive:
            each.stop()


@pytest.fixture
def proxied() -> Iterator[Callable[[int], Proxy]]:
    """Puts a proxy in front of a port."""
    proxies: list[Proxy] = []

    def make(port: int) -> Proxy:
        proxies.append(Proxy(port))
        return proxies[-1]

    yield make
    for each in proxies:
        each.__exit__()
