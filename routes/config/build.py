"""Builds the frozen values of `routes.model` from settings without a fault."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from routes.keys.addresses import KAFKA
from routes.keys.secrets import is_secret_key, variables
from routes.model import (
    BodyConversion,
    Config,
    EmbeddedConfig,
    HttpConfig,
    JournalConfig,
    KafkaConfig,
    Policy,
    ReloadConfig,
    Route,
    RouterConfig,
    RoutingConfig,
    SinkConfig,
    SourceConfig,
    Target,
    TracingConfig,
)
from routes.predicate import parse
from routes.targets import REPLY_SINK, REPLY_TO, Reference, Template, reply_route

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from routes.keys.addresses import Destination
    from routes.keys.settings import Settings

__all__ = ["build"]


def build(settings: Settings, path: Path, text: str = "") -> Config:
    """Returns the configuration of a file with that text. To be called only when lint found no error."""
    sinks = tuple(_sink(settings, name) for name in settings.names("sink"))
    return Config(
        path=path,
        bridge_id=settings.get("bridge.id"),
        kafka=KafkaConfig(
            settings.get("kafka.bootstrap.servers"),
            common=_passed_on(settings, "kafka.*"),
            producer=_passed_on(settings, "kafka.producer.*"),
            consumer=_passed_on(settings, "kafka.consumer.*"),
        ),
        journal=JournalConfig(**settings.made(JournalConfig, "")),
        router=RouterConfig(**settings.made(RouterConfig, "")),
        routing=RoutingConfig(**settings.made(RoutingConfig, "")),
        routes=_routes(settings, sinks),
        sources=tuple(_source(settings, name) for name in settings.names("source")),
        sinks=sinks,
        http=_http(settings),
        embedded=EmbeddedConfig(**settings.made(EmbeddedConfig, "")),
        spark=MappingProxyType({s.entry.key: s.value for s in settings.open("spark.*")}),
        reload=ReloadConfig(**settings.made(ReloadConfig, "")),
        tracing=TracingConfig(**settings.made(TracingConfig, "")),
        secret_variables=frozenset(_secret_variables(settings)),
        text=text,
    )


def _secret_variables(settings: Settings) -> Iterator[str]:
    for setting in settings.by_key.values():
        if setting.row.masked or is_secret_key(setting.entry.key):
            yield from variables(setting.entry.value)


def _routes(settings: Settings, sinks: Sequence[SinkConfig]) -> tuple[Route, ...]:
    """Returns the routes of the file, after those that take replies back to their askers."""
    own = (_route(settings, name, sinks) for name in settings.names("routes"))
    replies = (_reply_route(settings, sink) for sink in sinks)
    return (*(replies if any(sink.reply_to for sink in sinks) else ()), *own)


def _route(settings: Settings, name: str, sinks: Sequence[SinkConfig]) -> Route:
    conversion = settings.get("routes.NAME.conv.body", name)
    target = _target(settings.get("routes.NAME.out.topic", name), sinks)
    return Route(
        name=settings.effective("routes.NAME.name", name),
        include=settings.get("routes.NAME.in.include", name),
        target=target,
        exclude=settings.get("routes.NAME.in.exclude", name),
        key=settings.get("routes.NAME.conv.key", name),
        on_soft_failure=settings.effective("routes.NAME.on-soft-failure", name),
        conversion=next((_conversion(sink, conversion) for sink in sinks if sink.name == target.sink), conversion),
    )


def _reply_route(settings: Settings, sink: SinkConfig) -> Route:
    """Returns the route that takes replies to the askers on the broker of this sink."""
    include = parse(f"{REPLY_SINK} = '{sink.name}'")
    target = Target(Template((Reference(REPLY_TO),)), (sink.topic,), sink.name)
    policy = Policy(settings.get("replies.on-soft-failure"))
    conversion = _conversion(sink, settings.get("replies.conv.body"))
    return Route(reply_route(sink.name), include, target, on_soft_failure=policy, conversion=conversion, added=True)


def _conversion(sink: SinkConfig, wanted: BodyConversion) -> BodyConversion:
    return BodyConversion.ANY if sink.type.any_body else wanted


def _target(destination: Destination, sinks: Sequence[SinkConfig]) -> Target:
    if destination.scheme == KAFKA:
        constant = () if destination.address.references else (str(destination.address),)
        return Target(destination.address, constant)
    by_name = [sink for sink in sinks if sink.name == destination.scheme]
    sink = (by_name or [sink for sink in sinks if sink.type.name == destination.scheme])[0]
    return Target(destination.address, (sink.topic,), sink.name)


def _http(settings: Settings) -> HttpConfig:
    host, port = settings.get("http.address")
    metrics = settings.get("http.metrics-address")
    certificate, key = (settings.get(f"http.tls.{part}") for part in ("certificate", "key"))
    return HttpConfig(
        host,
        port,
        certificate and settings.base / certificate,
        key and settings.base / key,
        token=settings.get("http.token"),
        username=settings.get("http.username"),
        password=settings.get("http.password"),
        metrics_host=metrics and metrics[0],
        metrics_port=metrics[1] if metrics else 0,
    )


def _source(settings: Settings, name: str) -> SourceConfig:
    source = settings.get("source.NAME.type", name).source
    made: SourceConfig = source(name=name, **settings.made(source, "source.NAME.", name))
    return made


def _sink(settings: Settings, name: str) -> SinkConfig:
    sink = settings.get("sink.NAME.type", name).sink
    made: SinkConfig = sink(name=name, **settings.made(sink, "sink.NAME.", name))
    return made


def _passed_on(settings: Settings, row: str) -> Mapping[str, str]:
    """Returns the settings under a row that ends in `*`, which are passed on to a client."""
    return MappingProxyType({setting.name: setting.value for setting in settings.open(row)})
