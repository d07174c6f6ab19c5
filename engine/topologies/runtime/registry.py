"""Plan of a topology with the configured schema registry."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from engine.errors import SetupError, UnreachableError
from engine.topologies.library.program import JVM_ERRORS, Program, is_outage, plan, reason_of
from engine.topologies.library.topology import Topology, TopologyError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from engine.topologies.registry_section import SchemaConfig

__all__ = ["planned"]


def planned(
    config: SchemaConfig,
    topology: Topology,
    spark: SparkSession,
    on_failure: str = "dead-letter",
    function_timeout_seconds: float | None = None,
    pinned: Mapping[str, int] = MappingProxyType({}),
) -> Program:
    """The plan of a topology, as `engine.streams.plan`.

    The latest versions of subjects take the place of the pinned ones if the topology cannot be planned with these: it
    may use a field that came later.

    Raises:
        TopologyError: as `engine.streams.plan`.
        SetupError: the files of `schema.registry.tls.*` cannot be used.
        UnreachableError: the schema registry does not answer.
    """
    try:
        return plan(
            topology,
            spark,
            on_failure=on_failure,
            registry=_client(config, spark),
            function_timeout_seconds=function_timeout_seconds,
            pinned=pinned,
        )
    except TopologyError as error:
        if is_outage(error.__cause__):
            raise UnreachableError(str(error)) from error
        if not pinned:
            raise
        return planned(config, topology, spark, on_failure, function_timeout_seconds)


def _client(config: SchemaConfig, spark: SparkSession) -> Any:
    """The `jmsbridge.serdes.SchemaRegistry` of the configuration; None if there is no registry."""
    if config.urls is None:
        return None
    jvm: Any = spark._jvm
    urls = jvm.java.util.ArrayList()
    for url in config.urls:
        urls.add(url)
    files = [None if each is None else str(each) for each in (config.ca, config.certificate, config.key)]
    times = [round(each * 1000) for each in (config.timeout_seconds, config.outage_timeout_seconds)]
    login = config.username, config.password, config.token
    try:
        settings = jvm.jmsbridge.serdes.RegistrySettings.of(urls, *login, *files, *times)
        return jvm.jmsbridge.serdes.HttpRegistry(settings)
    except JVM_ERRORS as error:
        raise SetupError(reason_of(error)) from error
