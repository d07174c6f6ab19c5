"""Schema registry of a configuration in the JVM: for topologies, and for the bodies that routes read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.errors import HardFailureError, SetupError, UnreachableError
from engine.schemas.schema_json import registry_settings
from engine.topologies.library.program import JVM_ERRORS, is_outage, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from engine.schemas.section import SchemaConfig

__all__ = ["RegistryUnavailableError", "called", "jvm_registry", "patient_registry", "registry_trouble"]

_FOR_EVER_SECONDS = 100 * 365 * 86_400.0
"""Time for which a router waits for the registry: messages wait with it, and none becomes a dead letter for that."""


class RegistryUnavailableError(UnreachableError):
    """The schema registry does not answer, and there is no copy of the schema that was asked for."""


def jvm_registry(config: SchemaConfig, spark: SparkSession) -> Any:
    """Returns the `jmsbridge.serdes.SchemaRegistry` of the configuration; None if there is no registry.

    Raises SetupError if the files of `schema.registry.tls.*` cannot be used.
    """
    if (given := registry_settings(config)) is None:
        return None
    jvm: Any = spark._jvm
    try:
        settings = jvm.jmsbridge.serdes.RegistrySettings.of(json.dumps(given))
        return jvm.jmsbridge.serdes.HttpRegistry(settings)
    except JVM_ERRORS as error:
        raise SetupError(reason_of(error)) from error


def patient_registry(config: SchemaConfig, spark: SparkSession) -> Any:
    """Returns what `jvm_registry` does, for a router, which waits for its registry as long as that is away."""
    return jvm_registry(replace(config, outage_timeout_seconds=_FOR_EVER_SECONDS), spark)


def called(question: Callable[[], object]) -> None:
    """Asks the JVM for schemas.

    Raises:
        RegistryUnavailableError: the registry does not answer.
        HardFailureError: a schema cannot be used, or the registry does not have it.
    """
    try:
        question()
    except JVM_ERRORS as error:
        kind = RegistryUnavailableError if is_outage(error) else HardFailureError
        raise kind(reason_of(error)) from error


def registry_trouble(spark: SparkSession) -> str:
    """Returns the reason why messages wait for the schema registry, in words; empty if they do not wait."""
    jvm: Any = spark._jvm
    return str(jvm.jmsbridge.serdes.HttpRegistry.troubles())
