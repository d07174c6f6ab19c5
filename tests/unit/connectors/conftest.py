"""Fixtures of the tests of connectors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.connectors.dropbox_bridge import Bridge


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[Bridge]:
    """A source and a sink of a bridge beside folders."""
    made = Bridge(tmp_path)
    yield made
    made.close()
