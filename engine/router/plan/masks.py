"""Masks of routes in the plan: bodies without what they hide, and the headers that belong to these bodies.

The JVM gets the masks apart from the plan, which has only their name: Spark prints plans, and masks have secrets.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from engine.message import BODY, BODY_TYPES, BodyType
from engine.router.plan.headers import header
from engine.router.plan.route_settings import RouteSettings
from engine.router.plan.row import PlanRow
from routes.model import BodyConversion, Route
from routes.predicate.mask import UNMASKABLE, Mask, too_large
from routes.predicate.nodes import DocumentFormat
from routes.predicate.path_json import path_json

__all__ = ["is_masked", "mask_fails", "mask_fault", "mask_json", "masked_body", "masked_headers"]


def is_masked(row: PlanRow, settings: RouteSettings) -> Column:
    """True for a message whose route has a mask."""
    return settings.masks(row).isNotNull()


def mask_fails(row: PlanRow, settings: RouteSettings) -> Column:
    """True for a message to which the mask of its route cannot be applied."""
    is_changed = F.lit(False) if row.left is None else row.left.isNotNull()
    return is_masked(row, settings) & ~is_changed & masked_body(row, settings).isNull()


def mask_fault(row: PlanRow, settings: RouteSettings) -> Column:
    """The reason why the mask of a message's route cannot be applied, for one to which it cannot."""
    fault = row.header_view.call(f"body-fault:{DocumentFormat.JSON}", row.value)
    return F.concat(F.lit(UNMASKABLE), F.coalesce(fault, F.lit(too_large(settings.bounds))))


def masked_body(row: PlanRow, settings: RouteSettings) -> Column:
    """The body of a message as the mask of its route, if any, leaves it; NULL if that cannot be applied."""
    if not settings.masks.values:
        return row.value
    body = row.header_view.call(f"mask:{_given(settings.routes)}", settings.masks(row), row.value)
    return F.when(is_masked(row, settings), body).otherwise(row.value)


def masked_headers(row: PlanRow, settings: RouteSettings) -> Column:
    """The headers of a message with the types that its body has as the mask of its route, if any, leaves it."""
    if all(each.conversion is BodyConversion.AS_IS for each in settings.publications if each.route.mask):
        return row.headers
    function = f"mask-types:{_given(settings.routes)}"
    kind, given = row.header(BODY), row.header(BODY_TYPES)
    types = row.header_view.functions.call(function, settings.masks(row), row.value, kind, given)
    headers = F.transform(
        row.headers, lambda each: F.when(each.getField("key") == BODY_TYPES, header(BODY_TYPES, types)).otherwise(each)
    )
    has_types = given.isNotNull() & kind.isin(BodyType.MAP.value, BodyType.STREAM.value)
    return F.when(has_types, headers).otherwise(row.headers)


def _given(routes: Iterable[Route]) -> str:
    """The name under which the JVM has the masks of these routes from now on."""
    text = json.dumps({route.name: mask_json(route.mask) for route in routes if route.mask})
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    jvm: Any = SparkSession.active()._jvm
    jvm.jmsbridge.predicate.Masks.put(name, text)
    return name


def mask_json(mask: Mask) -> dict[str, Any]:
    """The JSON of a mask as `jmsbridge.predicate.Mask` reads it."""
    return {
        "paths": [path_json(path) for path in mask.paths],
        "types": mask.type_names,
        "method": mask.method,
        "secret": mask.secret,
    }
