"""Readings of a bridge's metrics, the rates between two of them, and reports of a running bridge, read over HTTP.

The status page, `jms-bridge status` and `lag` show these, so that none of them needs a Prometheus.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any, Self

from prometheus_client.parser import text_string_to_metric_families

from engine.errors import HardFailureError, UnreachableError
from engine.telemetry import metrics
from engine.telemetry.client import ask, base_url
from engine.telemetry.http_section import HttpConfig
from routes.sections import HELD

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prometheus_client.metrics_core import Metric as Family

    from engine.telemetry.http_section import HttpConfig
    from engine.telemetry.metrics import Metric
    from routes.keys.addresses import Peer

__all__ = [
    "EARLIER",
    "AddressCount",
    "ComponentReport",
    "MetricSample",
    "PeerReport",
    "Report",
    "Traffic",
    "look",
    "read",
    "read_earlier",
]

_ANSWER_SECONDS = 5.0
_PEER_SECONDS = 2.0
_MISSING = 404
_PEERS = "/peers"
EARLIER = "/metrics/earlier"
"""Path of the reading that rates are computed from."""
_UNKNOWN = {_PEERS: "[]", EARLIER: '{"seconds_ago": 0, "values": {}}'}
"""Paths that not every bridge has, and what stands for the answer."""
_RATE_SECONDS = 1.0
_REFUSED = (401, 403)
_NAMES = frozenset(metric.name for metric in metrics.METRICS)


@dataclass(frozen=True, slots=True)
class MetricSample:
    """The values of selected metrics at one moment."""

    time: float
    """Seconds of a monotonic clock."""
    values: Mapping[str, tuple[tuple[Mapping[str, str], float], ...]] = field(default_factory=dict)
    """By name of the metric, its series: labels and value."""

    @classmethod
    def of(cls, time: float, families: Iterable[Family], names: frozenset[str]) -> Self:
        """Makes a reading of the samples whose names are in `names`."""
        values: dict[str, list[tuple[Mapping[str, str], float]]] = {}
        for family in families:
            for sample in family.samples:
                if sample.name in names:
                    values.setdefault(sample.name, []).append((sample.labels, sample.value))
        return cls(time, {name: tuple(series) for name, series in values.items()})

    @classmethod
    def from_json(cls, now: float, text: str) -> Self:
        """Makes the reading that `json` wrote, on a clock that shows `now`; ValueError if the text is another."""
        try:
            body = json.loads(text)
            values = {
                str(name): tuple((dict(labels), float(value)) for labels, value in series)
                for name, series in body["values"].items()
            }
            return cls(now - float(body["seconds_ago"]), values)
        except (KeyError, TypeError, AttributeError) as error:
            msg = f"not a reading: {error!r}"
            raise ValueError(msg) from error

    def json(self, now: float) -> dict[str, object]:
        """The reading as a JSON object, for a reader with another clock; `now` is the time of this one.

        Values without a number, such as a latency before the first message, are left out.
        """
        values = {
            name: [(labels, value) for labels, value in series if isfinite(value)]
            for name, series in self.values.items()
        }
        return {"seconds_ago": now - self.time, "values": values}

    @classmethod
    def parse(cls, time: float, text: str, names: frozenset[str]) -> Self:
        """Makes a reading from Prometheus' text format; ValueError if the text is not in that format."""
        return cls.of(time, text_string_to_metric_families(text), names)

    def by(self, metric: Metric, label: str) -> dict[str, float]:
        """The values of a metric, added up for each value of a label."""
        sums: dict[str, float] = {}
        for labels, value in self.values.get(metric.name, ()):
            sums[labels.get(label, "")] = sums.get(labels.get(label, ""), 0.0) + value
        return sums

    def total(self, metric: Metric) -> float | None:
        """The sum of all values of a metric; None if it has none."""
        series = self.values.get(metric.name)
        return sum(value for _, value in series) if series else None


@dataclass(frozen=True, slots=True)
class Traffic:
    """An earlier and the latest reading, for rates between them; values are those of this host and its peers."""

    before: MetricSample
    now: MetricSample
    peers: tuple[Traffic, ...] = ()
    """Readings of the peers of a bridge, each taken at times of its own."""

    def series(self, metric: Metric) -> list[tuple[Mapping[str, str], float]]:
        """The latest values of a metric, with their labels."""
        own = self.now.values.get(metric.name, ())
        return [*own, *(each for peer in self.peers for each in peer.series(metric))]

    def by(self, metric: Metric, label: str) -> dict[str, float]:
        """The latest values of a metric, added up for each value of a label."""
        return _added([self.now.by(metric, label), *(peer.by(metric, label) for peer in self.peers)])

    def total(self, metric: Metric) -> float | None:
        """The sum of the latest values of a metric; None if it has none."""
        return _sum([self.now.total(metric), *(peer.total(metric) for peer in self.peers)])

    def rates(self, metric: Metric, label: str) -> dict[str, float]:
        """Growth of a counter per second, for each value of a label; empty if both readings are of the same moment."""
        return _added([self._own_rates(metric, label), *(peer.rates(metric, label) for peer in self.peers)])

    def rate(self, metric: Metric) -> float | None:
        """Growth of a counter per second over all series; None without a value or with readings of one time."""
        return _sum([self._own_rate(metric), *(peer.rate(metric) for peer in self.peers)])

    def _own_rates(self, metric: Metric, label: str) -> dict[str, float]:
        seconds = self.now.time - self.before.time
        if seconds <= 0:
            return {}
        old = self.before.by(metric, label)
        # A process that was restarted counts from 0.
        return {name: max(new - old.get(name, 0.0), 0.0) / seconds for name, new in self.now.by(metric, label).items()}

    def _own_rate(self, metric: Metric) -> float | None:
        seconds, new = self.now.time - self.before.time, self.now.total(metric)
        if seconds <= 0 or new is None:
            return None
        return max(new - (self.before.total(metric) or 0.0), 0.0) / seconds


def _added(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            sums[name] = sums.get(name, 0.0) + value
    return sums


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class ComponentReport:
    """State and figures of one component."""

    component: str
    state: str
    detail: str
    rate: float | None
    """Messages per second: journaled by a source, routed by the router, delivered by a sink; None if unknown."""
    lag: float | None
    """Records that wait for the component, of a source the messages at its system, of all its workers at the first;
    None if unknown."""
    restarts: float
    cpu: float | None
    """CPU cores in use; None if unknown."""
    memory: float | None
    """Resident memory in bytes; None if unknown."""


@dataclass(frozen=True, slots=True)
class AddressCount:
    """Number of messages to an address."""

    address: str
    """Name of the queue or topic; empty for messages without one."""
    messages: float

    @staticmethod
    def of(counts: Mapping[str, float]) -> tuple[AddressCount, ...]:
        """Makes them of numbers by address, the greatest first and without zeros."""
        some = [AddressCount(address, messages) for address, messages in counts.items() if messages]
        return tuple(sorted(some, key=lambda each: (-each.messages, each.address)))


@dataclass(frozen=True, slots=True)
class PeerReport:
    """State of the parts of a bridge on another host."""

    address: str
    reachable: bool
    """True if it has answered within the last seconds."""
    silent_seconds: float
    """Time since its last answer, or since it was first asked."""
    trouble: str
    """Reason why it is not reachable, in one line; empty if it is."""
    ready: bool
    """True if it is reachable and every part there is ready, or stands by."""
    parts: tuple[ComponentReport, ...]
    """Parts as of the last answer; if it is not reachable their state is `unreachable`, and they have no figures."""


@dataclass(frozen=True, slots=True)
class Report:
    """State and figures of a bridge at a moment, on the host that was asked; `peers` are its other hosts."""

    bridge: str
    url: str
    ready: bool
    leader: bool | None
    """True if this bridge leads; None without an election."""
    has_leader: bool
    """True if this bridge or another one is known to lead, or if there is no election."""
    standby: str
    """Reason why this bridge does not lead, in one line; empty if it leads."""
    waiting_for: tuple[str, ...]
    received: float | None
    routed: float | None
    failed: float | None
    """`received`, `routed` and `failed` are messages per second; None if unknown."""
    latency_seconds: float | None
    journal_lag: float | None
    journal_lag_seconds: float | None
    dead_letters: float | None
    dead_letters_oldest_seconds: float | None
    config_hash: str
    """Hash of the configuration in force."""
    reload_time: str
    """Time at which the properties file was last read."""
    reload_success: bool
    reload_why: str
    """Reason why the last reload was refused; empty if it was not."""
    parts: tuple[ComponentReport, ...]
    paused_routes: tuple[str, ...] = ()
    """Names of the routes that hold their messages."""
    held: float = 0.0
    """Messages that are held for routes that are or were paused; they do not count as dead letters."""
    unmatched: tuple[AddressCount, ...] = ()
    """Messages that no route took since the router's process started, by address, the greatest numbers first."""
    instance: str = ""
    """Id of the supervisor that has answered; empty for a bridge without peers."""
    peers: tuple[PeerReport, ...] = ()

    @property
    def stands_by(self) -> bool:
        """True if this bridge stands by while another one leads."""
        return bool(self.standby) and self.has_leader

    @property
    def is_well(self) -> bool:
        """True if this bridge is ready or stands by, and so are all its peers."""
        return (self.ready or self.stands_by) and all(peer.ready for peer in self.peers)


def look(
    bridge_id: str, http: HttpConfig, before: MetricSample, peer: Peer | None = None
) -> tuple[Report, MetricSample]:
    """Reads the current state of a bridge; rates are since the reading `before`, and unknown if that is empty.

    Returns the report, and the new reading for the next call. With a `peer`, that one is asked for its own parts.

    Raises:
        UnreachableError: no bridge answers, or not one of this version.
        HardFailureError: the bridge refuses the login.
    """
    now = read(http, peer)
    try:
        body = json.loads(_answer(http, "/ready", peer))
        peers = _peers(http) if http.peers and peer is None else ()
        return _report(bridge_id, body, Traffic(before, now), base_url(http, peer), peers), now
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _no_bridge(http, peer, error) from error


def _answer(config: HttpConfig, path: str, peer: Peer | None = None) -> str:
    code, body = ask(config, path, _PEER_SECONDS if peer else _ANSWER_SECONDS, peer=peer)
    if code in _REFUSED:
        where = base_url(config, peer)
        keys = "http.token, http.username or http.oidc.command.*"
        msg = f"{where} does not take the login of this configuration: check {keys}"
        raise HardFailureError(msg)
    # A bridge of an earlier version, or one that was started before the file named its peers, does not know of all.
    return _UNKNOWN[path] if code == _MISSING and path in _UNKNOWN else body


def _peers(config: HttpConfig) -> tuple[PeerReport, ...]:
    return tuple(
        PeerReport(**{**peer, "parts": tuple(ComponentReport(**part) for part in peer["parts"])})
        for peer in json.loads(_answer(config, _PEERS))
    )


def read_earlier(config: HttpConfig) -> MetricSample:
    """Reads the earlier metrics of a bridge that `look` compares with, some seconds old; raises the errors of `look`.

    A bridge that has just started has none, nor has one of an earlier version: its metrics are read now, and the
    function returns a second later.
    """
    try:
        earlier = MetricSample.from_json(time.monotonic(), _answer(config, EARLIER))
    except ValueError as error:
        raise _no_bridge(config, None, error) from error
    if not earlier.values:
        earlier = read(config)
        time.sleep(_RATE_SECONDS)
    return earlier


def read(config: HttpConfig, peer: Peer | None = None) -> MetricSample:
    """Reads the current metrics of a bridge, or of a peer of it; raises the errors of `look`."""
    try:
        return MetricSample.parse(time.monotonic(), _answer(config, "/metrics", peer), _NAMES)
    except ValueError as error:
        raise _no_bridge(config, peer, error) from error


def _no_bridge(config: HttpConfig, peer: Peer | None, error: Exception) -> UnreachableError:
    return UnreachableError(f"the server at {base_url(config, peer)} is not a bridge of this version: {error!r}")


def _report(
    bridge_id: str, body: Mapping[str, Any], readings: Traffic, url: str, peers: tuple[PeerReport, ...]
) -> Report:
    now = readings.now
    traffic = readings if readings.before.values else Traffic(now, now)
    configuration = body["configuration"]
    reload, held = configuration["reload"], now.by(metrics.DEAD_LETTERS, "reason").get(HELD, 0.0)
    return Report(
        bridge=configuration.get("bridge", bridge_id),
        url=url,
        ready=body["ready"],
        leader=body.get("leader"),
        has_leader=body.get("has_leader", True),
        standby=body.get("standby", ""),
        waiting_for=tuple(body["waiting_for"]),
        received=traffic.rate(metrics.JOURNALED),
        routed=traffic.rate(metrics.ROUTED),
        failed=traffic.rate(metrics.FAILED),
        latency_seconds=now.total(metrics.LATENCY_AVERAGE),
        journal_lag=now.total(metrics.LAG_RECORDS),
        journal_lag_seconds=now.total(metrics.LAG_SECONDS),
        dead_letters=None if (letters := now.total(metrics.DEAD_LETTERS)) is None else letters - held,
        dead_letters_oldest_seconds=now.total(metrics.DEAD_LETTER_AGE),
        config_hash=configuration["hash"],
        reload_time=reload["time"],
        reload_success=reload["success"],
        reload_why=reload.get("why", ""),
        parts=_parts(body["components"], traffic),
        paused_routes=tuple(configuration.get("paused", ())),
        held=held,
        unmatched=AddressCount.of(now.by(metrics.UNMATCHED_BY_ADDRESS, "address")),
        instance=body.get("instance", ""),
        peers=peers,
    )


def _parts(components: Mapping[str, Mapping[str, str]], traffic: Traffic) -> tuple[ComponentReport, ...]:
    rates = {f"source:{name}": each for name, each in traffic.rates(metrics.JOURNALED, "source").items()}
    rates |= {f"sink:{name}": each for name, each in traffic.rates(metrics.DELIVERED, "sink").items()}
    now = traffic.now
    lags = now.by(metrics.SINK_LAG, "component")
    lags |= {f"source:{name}": each for name, each in now.by(metrics.SOURCE_WAITING, "source").items()}
    if (routed := traffic.rate(metrics.ROUTED)) is not None:
        rates["router"] = routed
    if (waiting := now.total(metrics.LAG_RECORDS)) is not None:
        lags["router"] = waiting
    cpu = traffic.rates(metrics.PROCESS_CPU, "component")
    memory = now.by(metrics.PROCESS_MEMORY, "component")
    restarts = now.by(metrics.RESTARTS, "component")
    return tuple(
        ComponentReport(
            name,
            str(part["state"]),
            str(part["detail"]),
            rates.get(name),
            lags.get(name),
            restarts.get(name, 0.0),
            cpu.get(name),
            memory.get(name),
        )
        for name, part in components.items()
    )
