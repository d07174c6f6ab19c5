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
def amqp(broker: EmbeddedArtemis, tmp_path: Path) -> Iterator[AmqpHarness]:
    client = QpidClient(f"failover:({broker.amqp_url})", tmp_path / "client.log")
    yield AmqpHarness(broker, client)
    client.kill()


@pytest.mark.parametrize("system", ["stomp", "amqp"])
def test_what_it_gives_again_after_a_clean_stop_of_the_source_is_known(
    broker: EmbeddedArtemis,
    amqp: AmqpHarness,
    configured: Configure,
    start: Start,
    queue: str,
    tmp_path: Path,
    system: str,
) -> None:
    amqp.send(queue, numbered(300))
    broker.stop()
    shutil.copytree(broker.folder, tmp_path / "before")
    broker.start()
    config = configured((StompHarness(broker) if system == "stomp" else amqp).settings(queue))
    source = start(config)
    source.acknowledges(300)
    source.stop()

    amqp.kill()
    shutil.rmtree(broker.folder)
    (tmp_path / "before").rename(broker.folder)
    broker.start()
    assert amqp.waiting(queue) == 300
    source = start(config)
    until(lambda: amqp.waiting(queue) == 0, what="empty")
    source.stop()

    assert Counter(numbers(config.bootstrap_servers, config.journal.topic)) == Counter(range(300))
    assert source.sample("jmsbridge_source_duplicates_total", source=SOURCE) == 300
