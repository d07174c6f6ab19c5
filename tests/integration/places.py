"""Places for checkpoints that are no local paths: a folder by its URI, and HDFS."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tests.integration.hdfs import CLIENT_SETTINGS, Hdfs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["KINDS", "Place"]

KINDS = ["file", pytest.param("hdfs", marks=pytest.mark.further_systems)]
"""Values of a fixture's parameter, from which `Place.of` makes a place."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place, and the settings of a bridge that uses it."""

    uri: str
    settings: Mapping[str, str] = field(default_factory=dict)
    hdfs: Hdfs | None = None

    @classmethod
    def of(cls, kind: str, folder: Path) -> Place:
        """Makes a place that is ready for use; `stop` ends what it takes."""
        if kind == "file":
            return cls(f"file://{folder}/files")
        hdfs = Hdfs(folder / "hdfs")
        hdfs.start()
        return cls(f"{hdfs.uri}/jms-bridge", CLIENT_SETTINGS, hdfs)

    def stop(self) -> None:
        if self.hdfs is not None:
            self.hdfs.stop()
