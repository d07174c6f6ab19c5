"""Settings of a topology's run, and the mode that they choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from engine.errors import UsageError

if TYPE_CHECKING:
    from engine.topologies.runtime.layout import Layout

__all__ = ["Guarantee", "Mode", "TopologySettings", "mode_of"]

Mode = Literal["auto", "realtime", "batch"]
Guarantee = Literal["exactly_once", "at_least_once"]

_MINIMUM_REALTIME_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class TopologySettings:
    """Settings of a topology's run."""

    build: str
    """The function that builds it, as `module:function`."""
    mode: Mode = "auto"
    guarantee: Guarantee = "exactly_once"
    interval_seconds: float | None = None
    """Time between two commits of the state; None: 1 second in batches, 30 in real-time mode."""
    on_failure: str = "dead-letter"
    """Treatment of a record that cannot be read or computed: `dead-letter`, `skip` or `stop`."""
    name: str = "topology"
    """Name of the log file of its JVM."""


def mode_of(settings: TopologySettings, layout: Layout) -> Mode:
    """The mode in which the topology runs; UsageError for one that would break its guarantee."""
    is_ahead = layout.clocked and len(layout.partitions) > 1
    if settings.mode == "realtime":
        if is_ahead:
            names = ", ".join(f"'{name}'" for name in layout.clocked)
            msg = (
                f"{names}: the clock could be ahead of records that the topology has not read from all of its topics "
                f"({', '.join(layout.partitions)}); use --mode batch, or read one topic alone, without a change of key"
            )
            raise UsageError(msg)
        for nodes, what, risk in (
            (layout.mixes_inputs, "records of several topics meet there", "meet them in another order"),
            (layout.python, "Python functions get many records at once", "cut them otherwise"),
        ):
            if settings.guarantee == "exactly_once" and nodes:
                names = ", ".join(f"'{name}'" for name in nodes)
                msg = (
                    f"{names}: {what}, and after a crash real-time mode could {risk}, so that it cannot be exactly "
                    "once; use --mode batch, or --guarantee at_least_once"
                )
                raise UsageError(msg)
        if settings.interval_seconds is not None and settings.interval_seconds < _MINIMUM_REALTIME_SECONDS:
            msg = f"the interval of real-time mode is at least {_MINIMUM_REALTIME_SECONDS:.0f} s"
            raise UsageError(msg)
        return "realtime"
    if (
        settings.mode == "batch"
        or layout.python
        or is_ahead
        or (settings.guarantee == "exactly_once" and layout.mixes_inputs)
    ):
        return "batch"
    return "realtime"
