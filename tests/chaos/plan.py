"""Which faults come when: a list that a seed decides, so that a run can be repeated."""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from tests.chaos.faults import FAULTS, KILLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.chaos.faults import Fault

__all__ = ["Step", "plan", "seed", "short"]

_KILLS_PER_FAULT = 3
_IMPATIENT = 0.2
"""How often the next fault does not wait until the bridge is over this one."""
_PAUSES_SECONDS = (0.5, 5.0)
_SHORT = (
    "kill router (driver)",
    "kill router (JVM)",
    "kill kafka (broker)",
    "kill source:stomp",
    "kill source:nats",
    "kill sink:amqp",
    "kill sink:nats",
)
_SHORT_PAUSES_SECONDS = (0.5, 2.0)


@dataclass(frozen=True, slots=True)
class Step:
    """One fault, and what comes after it."""

    fault: Fault
    is_patient: bool
    """Whether the next one waits until messages flow again; else it meets a bridge that is just recovering."""
    pause_seconds: float
    """Before the next one."""


def seed() -> int:
    """CHAOS_SEED, else one that no other run has."""
    return int(os.environ.get("CHAOS_SEED") or time.time_ns() // 1_000_000 % 1_000_000_000)


def plan(seed: int, kills: int, only: str = "") -> Sequence[Step]:
    """So many kills, each victim as often as any other, and one of the other faults after every third.

    With `only`, just the faults that have this text in their names.
    """
    chance = Random(seed)  # noqa: S311 # nobody is to be kept from guessing it
    killed, disturbed = (_decks(chance, [each for each in all_ if only in each.name]) for all_ in (KILLS, FAULTS))
    faults = []
    for number in range(1, kills + 1):
        faults.append(next(killed))
        if number % _KILLS_PER_FAULT == 0:
            faults += itertools.islice(disturbed, 1)
    return [Step(fault, chance.random() > _IMPATIENT, chance.uniform(*_PAUSES_SECONDS)) for fault in faults]


def short(seed: int) -> Sequence[Step]:
    """A few kills that matter most, in an order of the seed's choice."""
    chance = Random(seed)  # noqa: S311
    kills = {fault.name: fault for fault in KILLS}
    return [
        Step(kills[name], True, chance.uniform(*_SHORT_PAUSES_SECONDS)) for name in chance.sample(_SHORT, len(_SHORT))
    ]


def _decks(chance: Random, faults: Sequence[Fault]) -> Iterator[Fault]:
    while faults:
        yield from chance.sample(faults, len(faults))
