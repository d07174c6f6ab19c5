"""Stages that a message passes between its route and its topic, each with its checks."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.router.plan.bodies import BodyStage
from engine.router.plan.destinations import DestinationStage
from engine.router.plan.failures import FailureCheck, FailureStage
from engine.router.plan.keys import KeyStage
from engine.router.plan.refusals import NO_REFUSALS, Refusals
from engine.router.plan.route_settings import RouteSettings
from engine.router.plan.row import PlanRow
from routes.sections import HELD, HELD_BECAUSE

__all__ = ["Stages", "stages_of"]


@dataclass(frozen=True, slots=True)
class Stages:
    """Stages of a plan, made of the settings of its routes."""

    settings: RouteSettings
    keys: KeyStage
    bodies: BodyStage
    destinations: DestinationStage
    failures: FailureStage


def stages_of(settings: RouteSettings, refusals: Refusals = NO_REFUSALS) -> Stages:
    """The stages for these routes; `refusals` is what Kafka does not take."""
    bodies, keys = BodyStage(settings), KeyStage(settings)
    destinations = DestinationStage(settings, bodies, refusals)
    held = [_held(settings)] if settings.paused.values else []
    checks = (*held, *bodies.checks(), *keys.checks(), *destinations.checks())
    return Stages(settings, keys, bodies, destinations, FailureStage(settings, checks))


def _held(settings: RouteSettings) -> FailureCheck:
    """The check that holds the messages of paused routes, before any other: their policy is `dead-letter`."""

    def fails(row: PlanRow) -> Column:
        return settings.paused(row).isNotNull()

    return FailureCheck(HELD, "publish", fails, lambda _: F.lit(HELD_BECAUSE), lambda _: HELD_BECAUSE)
