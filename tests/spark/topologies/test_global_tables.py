"""Records of a global table that cannot be read, by the policy of the topology for records that fail."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from engine.streams import StreamsBuilder, Topology, TopologyError, TopologyTestDriver, json


def build() -> Topology:
    builder = StreamsBuilder("titled")
    pages = builder.global_table("pages", value=json("title string, n int"), key=json("id bigint"), name="pages")
    builder.stream("clicks", value=json("page bigint")).left_join(pages, on="struct(page AS id)").to("out")
    return builder.build()


def key(page: int) -> dict[str, int]:
    return {"id": page}


def test_a_record_of_a_global_table_that_cannot_be_read_is_a_dead_letter(spark: SparkSession) -> None:
    driver = TopologyTestDriver(build(), spark)
    driver.pipe_input("pages", key(1), {"title": "one", "n": 1}, 1_000)
    driver.pipe_input("pages", key(1), b"broken", 2_000, headers={"from": b"x"})
    driver.pipe_input("pages", b"short", {"title": "two", "n": 1}, -1)
    driver.pipe_input("pages", b"short", None, 3_000)
    driver.pipe_input("pages", None, {"title": "none"}, 4_000)
    driver.pipe_input("pages", key(2), {"title": "two", "n": 1}, 5_000)
    for page in (1, 2):
        driver.pipe_input("clicks", None, {"page": page}, 6_000)
    # A row stays as it was if what should replace it cannot be read.
    assert [each.value["title"] for each in driver.read_output("out")] == ["one", "two"]
    letters = driver.rejected()
    about = [{name.removeprefix("jmsbridge."): value for name, value in each.headers} for each in letters]
    assert [(each["reason"], each["position"], each["node"]) for each in about] == [
        (b"value", b"pages:0:1", b"pages"),
        (b"key", b"pages:0:2", b"pages"),
        (b"key", b"pages:0:3", b"pages"),
    ]
    assert [each.get("timestamp") for each in about] == [b"2000", None, b"3000"]
    assert (about[0]["from"], driver.counts()["pages", "rejected_records"]) == (b"x", 3)


@pytest.mark.parametrize("policy", ["skip", "stop"])
def test_a_record_of_a_global_table_is_treated_by_the_policy(spark: SparkSession, policy: str) -> None:
    driver = TopologyTestDriver(build(), spark, on_failure=policy)
    if policy == "stop":
        with pytest.raises(TopologyError, match="'pages' cannot process the record pages:0:0"):
            driver.pipe_input("pages", key(1), b"broken")
    else:
        driver.pipe_input("pages", key(1), b"broken")
        assert driver.counts()["pages", "rejected_records"] == 1
        assert driver.rejected() == []
