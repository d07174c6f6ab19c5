"""A local Spark session, one for all tests of a process: started as the router starts its own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from engine.spark.launch import Launch
from engine.spark.session import close, open_session
from tests.processes import listening

ODD = "a\\b = c:#!\té\nsecond"
"""A setting with the characters that properties files treat specially."""

SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "1",
    # As in queries of streams.
    "spark.sql.adaptive.enabled": "false",
    "spark.test.odd": ODD,
}


@pytest.fixture(scope="session")
def spark(opened_in_python: set[int], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    before = listening(os.getpid())
    folder = tmp_path_factory.mktemp("spark")
    session = open_session(Launch(folder, folder / "spark.log", SETTINGS))
    opened_in_python |= listening(os.getpid()) - before
    yield session
    close(session)


@pytest.fixture(scope="session")
def opened_in_python() -> set[int]:
    """The ports on which this process listens since it opened the session."""
    return set()
