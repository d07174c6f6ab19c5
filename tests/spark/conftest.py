"""A local Spark session, one for all tests of a process: started as the router starts its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from engine.spark.launch import Launch
from engine.spark.session import close, open_session

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
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    session = open_session(Launch(folder, folder / "spark.log", SETTINGS))
    yield session
    close(session)
