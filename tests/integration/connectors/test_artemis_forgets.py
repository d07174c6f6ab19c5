"""An Artemis that dies before it has kept acknowledgements, although it has answered the good-bye of their sender."""

from __future__ import annotations

import shutil
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from engine.embedded import EmbeddedArtemis, free_ports
from tests.conftest import JARS
from tests.integration.connectors.amqp_harness import AmqpHarness
from tests.integration.connectors.amqp_jms import QpidClient
from tests.integration.connectors.running import SOURCE, numbered, numbers
from tests.integration.connectors.stomp_harness import StompHarness
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.connectors.conftest import Configure, Start


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedArtemis]:
    server = EmbeddedArtemis(tmp_path, *free_ports(3), JARS)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def amqp(broker: EmbeddedArtemis) -> Iterator[AmqpHarness]:
    client = QpidClient(f"failover:({broker.amqp_url})")
    yield AmqpHarness(broker, client)
    client.leave()


def test_what_it_gives_again_after_a_clean_stop_of_the_source_is_known(
    broker: EmbeddedArtemis, amqp: AmqpHarness, configured: Configure, start: Start, queue: str, tmp_path: Path
) -> None:
    systems = {f"{queue}-stomp": StompHarness(broker), f"{queue}-amqp": amqp}
    for name in systems:
        amqp.send(name, numbered(300))
    broker.stop()
    shutil.copytree(broker.folder, tmp_path / "before")
    broker.start()
    configs = {
        name: configured({**each.settings(name), "journal.topic": f"journal-{name}"}) for name, each in systems.items()
    }
    for config in configs.values():
        source = start(config)
        source.acknowledges(300)
        source.stop()

    amqp.kill()
    shutil.rmtree(broker.folder)
    (tmp_path / "before").rename(broker.folder)
    broker.start()
    for name, config in configs.items():
        assert amqp.waiting(name) == 300
        source = start(config)
        until(lambda name=name: amqp.waiting(name) == 0, what="empty")
        source.stop()

        assert Counter(numbers(config.bootstrap_servers, config.journal.topic)) == Counter(range(300))
        assert source.sample("jmsbridge_source_duplicates_total", source=SOURCE) == 300
