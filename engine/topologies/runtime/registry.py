"""Plan of a topology with the configured schema registry."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.errors import UnreachableError
from engine.schemas.jvm_registry import jvm_registry
from engine.topologies.library.program import Program, is_outage, plan
from engine.topologies.library.topology import Topology, TopologyError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from engine.schemas.section import SchemaConfig

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
    registry = jvm_registry(config, spark)

    def plan_with(versions: Mapping[str, int]) -> Program:
        try:
            return plan(
                topology,
                spark,
                on_failure=on_failure,
                registry=registry,
                function_timeout_seconds=function_timeout_seconds,
                pinned=versions,
            )
        except TopologyError as error:
            if is_outage(error.__cause__):
                raise UnreachableError(str(error)) from error
            raise

    try:
        return plan_with(pinned)
    except TopologyError:
        if not pinned:
            raise
        return plan_with({})
