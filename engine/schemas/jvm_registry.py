"""Schema registry of a configuration as an object in the JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import SetupError
from engine.topologies.library.program import JVM_ERRORS, reason_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from engine.schemas.section import SchemaConfig

__all__ = ["jvm_registry"]


def jvm_registry(config: SchemaConfig, spark: SparkSession) -> Any:
    """Returns the `jmsbridge.serdes.SchemaRegistry` of the configuration; None if there is no registry.

    Raises SetupError if the files of `schema.registry.tls.*` cannot be used.
    """
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
