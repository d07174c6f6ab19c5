"""The launch of the router's JVM, without starting one."""

from __future__ import annotations

import pytest

from engine.spark.settings import java_options


@pytest.mark.parametrize(
    ("memory", "young"),
    [("2g", "348160k"), ("1536m", "348160k"), ("900", "307200k"), ("1GB", "348160k"), (" 900000k ", "300000k")],
)
def test_a_third_of_the_heap_is_for_what_is_soon_garbage_up_to_a_limit(memory: str, young: str) -> None:
    assert f"-Xmn{young}" in java_options(memory)


def test_a_size_that_spark_will_refuse_is_left_to_it() -> None:
    assert not [option for option in java_options("lots") if option.startswith("-Xmn")]
