"""The launch of the router's JVM, without starting one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from engine.private import nameless_file
from engine.spark import launch
from engine.spark.settings import environment, java_options
from routes.config.load import load

if TYPE_CHECKING:
    from pathlib import Path

    from routes.model import Config

_ROUTE = "routes.orders.in.include=msg.address==orders", "routes.orders.out.topic=orders"


@pytest.mark.parametrize(
    ("memory", "young"),
    [("2g", "348160k"), ("1536m", "348160k"), ("900", "307200k"), ("1GB", "348160k"), (" 900000k ", "300000k")],
)
def test_a_third_of_the_heap_is_for_what_is_soon_garbage_up_to_a_limit(memory: str, young: str) -> None:
    assert f"-Xmn{young}" in java_options(memory)


def test_a_size_that_spark_will_refuse_is_left_to_it() -> None:
    assert not [option for option in java_options("lots") if option.startswith("-Xmn")]


def test_the_jvm_gets_no_variable_that_holds_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_PASSWORD", "hunter2")
    monkeypatch.setenv("SPARK_HOME", "/elsewhere")
    variables = environment(tmp_path, "local[2]", ["BROKER_PASSWORD"])
    assert "PATH" in variables
    assert {"BROKER_PASSWORD", "SPARK_HOME"}.isdisjoint(variables)


def test_a_description_holds_what_a_launch_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_PASSWORD", "hunter2")
    config = config_of(tmp_path, "spark.driver.memory=1g", "spark.ssl.keyPassword=${env:BROKER_PASSWORD}")
    given: list[object] = []
    monkeypatch.setattr(launch, "Launch", lambda *arguments: given.extend(arguments))
    described = launch.early_launch(config)
    assert described is not None
    with nameless_file(described) as file:
        launch.launch_by(os.dup(file.fileno()))
    folder, log, settings, hidden = given
    assert (folder, log) == (tmp_path / "var" / "spark", tmp_path / "var" / "log" / "spark.log")
    assert isinstance(settings, dict)
    assert settings["spark.driver.memory"] == "1g"
    assert settings["spark.ssl.keyPassword"] == "hunter2"
    assert hidden == ["BROKER_PASSWORD"]


def test_no_jvm_is_started_early_for_a_cluster(tmp_path: Path) -> None:
    assert launch.early_launch(config_of(tmp_path, "spark.master=spark://spark.example:7077")) is None


def config_of(folder: Path, *lines: str) -> Config:
    file = folder / "bridge.properties"
    file.write_text("\n".join(["bridge.id=b1", f"embedded.data={folder}/var", *_ROUTE, *lines]))
    return load(file)
