"""Places for checkpoints that are not local paths: a folder by its URI, HDFS, and a store with S3's interface."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tests.integration.hdfs import CLIENT_SETTINGS, Hdfs
from tests.integration.s3 import S3

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["KINDS", "Place"]

KINDS = ["file", *(pytest.param(each, marks=pytest.mark.further_cases) for each in ("hdfs", "s3"))]
"""Values of a fixture's parameter, from which `Place.of` makes a place."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place, and the settings of a bridge that uses it."""

    uri: str
    settings: Mapping[str, str] = field(default_factory=dict)
    server: Hdfs | S3 | None = None

    @classmethod
    def of(cls, kind: str, folder: Path) -> Place:
        """Makes a place that is ready for use; `stop` ends what it takes."""
        if kind == "file":
            return cls(f"file://{folder}/files")
        if kind == "s3":
            s3 = S3(folder / "s3.log")
            return cls(f"{s3.uri}/jms-bridge", s3.settings, s3)
        hdfs = Hdfs(folder / "hdfs")
        hdfs.start()
        return cls(f"{hdfs.uri}/jms-bridge", CLIENT_SETTINGS, hdfs)

    def stop(self) -> None:
        if self.server is not None:
            self.server.stop()
