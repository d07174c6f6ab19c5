"""Time from the start of the process to the first routed message, after a kill as well, and the pause of a reload.

The router alone, on a Kafka that runs and a journal with messages in it, a few and then millions, and the peer on the
same; both killed in the midst of the long journal (`bench.kills`); and the whole bridge from nothing, embedded brokers
included (`bench.whole`). A changed route makes a running router begin anew (`bench.reload`).
"""

from __future__ import annotations

import shlex
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from bench import programs
from bench.contestants import Bridge, Peer, Place
from bench.kills import VICTIMS, after_kill
from bench.processes import running
from bench.reload import Pause, reload_pause
from bench.report import Check, Report, table
from bench.whole import whole_start
from bench.workload import BRIDGE_ID, expected
from engine.jars import HALLMARKS, jars

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bench.broker import Broker
    from bench.contestants import Contestant
    from bench.options import Options

__all__ = ["measure"]

SECONDS, TIMES_PEER = 5.0, 3.0
"""Target of a router: so many seconds, or so many times the peer's in the same rounds."""
WHOLE_SECONDS = 8.0
PAUSE_SECONDS = 3.0
KILL_SECONDS = 8.0
_WHOLE = "bridge with brokers, JMS to Kafka"
_WITHOUT = "no class data"
_WAITING = " records waiting"
_JOURNAL, _FULL = "bench.journal", "bench.journal.full"
_RECORDS = 1600
_PATIENCE_SECONDS = 540.0


class _Start(NamedTuple):
    """One start until its first routed message is seen."""

    seconds: float
    cpu_seconds: float
    """Of the process and all that it starts."""

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s, {self.cpu_seconds:.1f} CPU-s"


def measure(broker: Broker, options: Options) -> Report:
    """All contestants in rounds: starts with the class-data archives of set-up, and without; reloads and kills."""
    broker.create(_JOURNAL)
    programs.run("Load", bootstrap=broker.bootstrap, topic=_JOURNAL, records=_RECORDS)
    bare = _without_class_data(options.folder)
    peers: list[Contestant] = [Peer(linger_ms=0)] if options.peer else []
    bridges = [Bridge(mode, options.settings, options.router) for mode in options.modes]
    contestants = list(peers)
    for mode, bridge in zip(options.modes, bridges, strict=True):
        contestants += bridge, Bridge(mode, options.settings, f"{bare} {options.router}", _WITHOUT)
    pauses: dict[str, list[Pause]] = {bridge.name: [] for bridge in bridges}
    found: dict[str, list[_Start]] = {contestant.name: [] for contestant in contestants}
    found |= {_WHOLE: [], f"{_WHOLE}, {_WITHOUT}": []}
    for _ in range(options.rounds):
        for contestant in contestants:
            found[contestant.name].append(_run(broker, contestant, options, _JOURNAL, _RECORDS))
            print(f"{contestant.name}: {found[contestant.name][-1]}", flush=True)
        for name, launcher in ((_WHOLE, ""), (f"{_WHOLE}, {_WITHOUT}", bare)):
            found[name].append(_Start(*whole_start(options, launcher)))
            print(f"{name}: {found[name][-1]}", flush=True)
        for bridge in bridges:
            pauses[bridge.name].append(reload_pause(broker, bridge, options))
            print(f"{bridge.name}: {pauses[bridge.name][-1]}", flush=True)
    kills = _full(broker, [*peers, *bridges], options, found) if options.start_records else {}
    seconds = {name: [start.seconds for start in starts] for name, starts in found.items()}
    cpu = {name: [start.cpu_seconds for start in starts] for name, starts in found.items()}
    first_columns = ["", "s, min / median / max", "CPU-s, min / median / max"]
    tables = [
        table(
            "Start of the process to the first routed message",
            first_columns,
            [[name, _spread(seconds[name]), _spread(cpu[name])] for name in found],
        ),
        table(
            f"Longest time without a routed record, {options.rate} a second, s, min / median / max",
            ["", "before the reload", "reload"],
            [
                [name, _spread([pause.undisturbed for pause in each], 2), _spread([pause.reload for pause in each], 2)]
                for name, each in pauses.items()
            ],
        ),
        table(
            "Kill to the first new record, s",
            ["", "min / median / max"],
            [[name, _spread(each)] for name, each in kills.items()],
        ),
    ]
    checks = _checks(seconds, pauses, kills, median(seconds[peers[0].name]) if peers else None)
    figures = {"seconds": seconds, "cpu_seconds": cpu, "pauses": pauses, "kills": kills}
    return Report("start", tables, checks, figures)


def _checks(
    seconds: Mapping[str, list[float]],
    pauses: Mapping[str, list[Pause]],
    kills: Mapping[str, list[float]],
    peer: float | None,
) -> list[Check]:
    """The targets; `peer` is the median start of the peer on a short journal."""
    middles = {name: median(each) for name, each in seconds.items()}
    checks = [Check(f"start, {_WHOLE}: seconds to the first message", middles[_WHOLE], WHOLE_SECONDS)]
    for name, each in pauses.items():
        longest = median(pause.reload for pause in each)
        checks.append(Check(f"reload, {name}: seconds without a routed record", longest, PAUSE_SECONDS))
    routers = [name for name in middles if name.startswith("bridge ") and name != _WHOLE and _WITHOUT not in name]
    for name in routers:
        most = max(SECONDS, 0.0 if peer is None or name.endswith(_WAITING) else TIMES_PEER * peer)
        checks.append(Check(f"start, {name}: seconds to the first message", middles[name], most))
    for name, found in kills.items():
        if name.startswith("bridge "):
            checks.append(Check(f"{name}: seconds to the first new record", median(found), KILL_SECONDS))
    return checks


def _full(
    broker: Broker, contestants: list[Contestant], options: Options, found: dict[str, list[_Start]]
) -> dict[str, list[float]]:
    """Adds the starts on a full journal to `found`; returns the seconds from a kill to the first new record."""
    broker.create(_FULL)
    records = options.start_records
    programs.run("Load", bootstrap=broker.bootstrap, topic=_FULL, records=records)
    kills: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for contestant in contestants:
            name = f"{contestant.name}, {records:,}{_WAITING}"
            found.setdefault(name, []).append(_run(broker, contestant, options, _FULL, records))
            print(f"{name}: {found[name][-1]}", flush=True)
            for victim in VICTIMS if isinstance(contestant, Bridge) else VICTIMS[-1:]:
                name = f"{contestant.name}, {victim} killed"
                kills.setdefault(name, []).append(after_kill(broker, contestant, _FULL, victim, options))
                print(f"{name}: {kills[name][-1]:.1f} s", flush=True)
    broker.delete(_FULL)
    return kills


def _spread(values: list[float], digits: int = 1) -> str:
    return " / ".join(f"{value:.{digits}f}" for value in (min(values), median(values), max(values)))


def _without_class_data(folder: Path) -> str:
    """Returns the start of a command that runs a bridge with the same jars and no class-data archive."""
    bare = (folder / "jars-without-class-data").absolute()
    bare.mkdir(parents=True, exist_ok=True)
    for name in HALLMARKS:
        if not (bare / name).exists():
            (bare / name).symlink_to((jars() / name).absolute())
    return f"env JMS_BRIDGE_JARS={shlex.quote(str(bare))}"


def _run(broker: Broker, contestant: Contestant, options: Options, journal: str, records: int) -> _Start:
    place = Place(broker.bootstrap, journal, options.folder)
    broker.create(*place.outputs)
    with running(contestant.command(place), place.log, programs.ROOT) as process:
        broker.await_count(place.outputs, sum(expected(records)), process, _PATIENCE_SECONDS)
        started = process.started
    first = float(programs.verify(broker.bootstrap, place.outputs, BRIDGE_ID, 0)["first_ms"]) / 1000
    broker.delete(*place.outputs)
    place.clean()
    return _Start(first - started, process.cpu_seconds(started, first))
