"""A bench with the router on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.spark.bench import Bench

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from engine.embedded import EmbeddedKafka
    from tests.conftest import TopicFactory


@pytest.fixture
def bench(tmp_path: Path, kafka: EmbeddedKafka, topic: TopicFactory) -> Iterator[Bench]:
    made = Bench(tmp_path, kafka.bootstrap, topic)
    yield made
    made.close()
