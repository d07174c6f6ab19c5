"""Copies of jars with classes in place of lambdas: they do the same, and what is serialized has the same form."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.spark.jvm import spark_jars
from tools.jar_copies import convert_lambdas

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _run(command: list[str | Path]) -> None:
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The copy of Scala's library."""
    used = [jar for name in ("scala-library-*", "xbean-asm9-*") for jar in spark_jars().glob(f"{name}.jar")]
    (copy,) = convert_lambdas(used, tmp_path_factory.mktemp("copies"), _run)
    return copy


def _chained(spark: SparkSession, library: Path) -> Any:
    """A lambda of the copy, loaded beside the library that the JVM has; it returns its argument."""
    java: Any = spark._jvm
    urls = java.py4j.reflection.ReflectionUtil.classForName("[Ljava.net.URL;")
    of_java = java.ClassLoader.getPlatformClassLoader()
    array = java.java.lang.reflect.Array.newInstance(urls.getComponentType(), 1)
    array[0] = java.java.io.File(str(library)).toURI().toURL()
    loader = java.java.net.URLClassLoader(array, of_java)

    def module(name: str) -> Any:
        return loader.loadClass(name).getField("MODULE$").get(None)

    function = loader.loadClass("scala.Function$")
    nothing = module("scala.collection.immutable.Nil$")
    chain = next(each for each in function.getMethods() if each.getName() == "chain")
    arguments = java.java.lang.reflect.Array.newInstance(java.java.lang.Object().getClass(), 1)
    arguments[0] = nothing
    return chain.invoke(module("scala.Function$"), arguments)


def test_a_lambda_is_an_ordinary_class_and_does_the_same(spark: SparkSession, library: Path) -> None:
    chained = _chained(spark, library)

    assert chained.getClass().getName().startswith("scala.Function$$$Lambda$")
    assert not chained.getClass().isHidden()
    assert chained.apply("x") == "x"


def test_a_lambda_is_read_by_the_original_library(spark: SparkSession, library: Path) -> None:
    java: Any = spark._jvm
    written = java.java.io.ByteArrayOutputStream()
    java.java.io.ObjectOutputStream(written).writeObject(_chained(spark, library))

    read = java.java.io.ObjectInputStream(java.java.io.ByteArrayInputStream(written.toByteArray())).readObject()

    assert read.getClass().isHidden()
    assert read.apply("x") == "x"
