"""Sessions of test drivers, each case in a process of its own: opened, shared, closed, and refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
HEAD = """
import os
from pathlib import Path
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from engine.errors import SetupError
from engine.jars import jars
from engine.streams import StreamsBuilder, TopologyTestDriver, json

def build():
    builder = StreamsBuilder("totals")
    amounts = builder.stream("in", value=json("amount double"))
    amounts.group_by_key().aggregate("totals", total="sum(amount)").to_stream().to("out")
    return builder.build()

def check(driver):
    driver.pipe_input("in", "k", {"amount": 5.5})
    (result,) = driver.read_output("out")
    assert (result.key, result.value) == ("k", {"total": 5.5})

def left():
    return list(Path(os.environ["TMPDIR"]).glob("jms-bridge-*"))
"""


def run(code: str, folder: Path) -> str:
    """The errors of a program, which has to end well and to leave no folder behind."""
    places = folder / "tmp"
    places.mkdir()
    ended = subprocess.run(
        [sys.executable, "-c", HEAD + code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(places)},
        capture_output=True,
        text=True,
        timeout=480,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    assert list(places.glob("jms-bridge-*")) == []
    return ended.stderr


def test_a_driver_opens_a_session_that_the_last_one_ends(tmp_path: Path) -> None:
    said = run(
        """
with TopologyTestDriver(build()) as first:
    check(first)
    with TopologyTestDriver(build()) as second:
        assert second.spark is first.spark
        check(second)
    process = SparkContext._gateway.proc
    check(TopologyTestDriver(build, first.spark))
    assert process.poll() is None
    assert len(left()) == 1
assert process.poll() is not None
assert SparkContext._active_spark_context is None
assert left() == []

def columns():
    builder = StreamsBuilder("columns")
    builder.stream("in", value=json("amount double")).map_values(total=F.col("amount")).to("out")
    return builder.build()

# With a function, which makes Columns, and without the end of a context.
check(TopologyTestDriver(columns))
""",
        tmp_path,
    )
    assert said == ""


def test_a_session_without_all_jars_is_refused_with_what_to_do(tmp_path: Path) -> None:
    run(
        """
one = str(jars() / "spark" / "jms-bridge-spark.jar")
spark = SparkSession.builder.master("local[1]").config("spark.jars", one).getOrCreate()
for given in (spark, None):
    # The session of the process is used where none is given.
    driver = TopologyTestDriver(build(), given)
    try:
        driver.pipe_input("in", "k", {"amount": 5.5})
    except SetupError as error:
        assert "leave `spark` out" in str(error) and "spark.jars" in str(error), error
    else:
        raise AssertionError("it is taken")
    driver.close()
assert SparkContext._active_spark_context is spark.sparkContext
spark.stop()
# A session that was stopped is not in the way of a new one.
with TopologyTestDriver(build()) as driver:
    check(driver)
""",
        tmp_path,
    )
