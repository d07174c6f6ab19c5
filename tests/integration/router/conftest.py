"""A bench on which routers are processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.router.bench import Bench, RouterProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from engine.embedded import EmbeddedKafka
    from tests.conftest import TopicFactory


@pytest.fixture
def bench(tmp_path: Path, kafka: EmbeddedKafka, topic: TopicFactory) -> Iterator[Bench[RouterProcess]]:
    made = Bench(tmp_path, kafka.bootstrap, topic, RouterProcess)
    yield made
    made.close()
