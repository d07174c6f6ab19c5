"""A local Spark session, one for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

JARS = Path(__file__).parents[2] / ".jars" / "spark"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    jars = sorted(str(jar) for jar in JARS.glob("*.jar"))
    assert jars, f"no jars in {JARS}: run `make setup`"
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.jars", ",".join(jars))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
