"""Changes of bodies that leave, in the plan: the mask of a route, then its conversions."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.message import BODY, BODY_TYPES, BodyType
from engine.printable import LONGEST_REASON
from engine.router.plan.headers import header
from engine.router.plan.masks import is_masked, mask_fails, masked, masked_body
from engine.router.plan.route_settings import RouteSettings
from engine.router.plan.row import PlanRow
from routes.body_steps import not_converted

__all__ = ["changed", "changed_body", "conversion_fault", "is_changed"]


def is_changed(row: PlanRow, settings: RouteSettings) -> Column:
    """True for a message whose route changes bodies."""
    return is_masked(row, settings) | settings.steps(row).isNotNull()


def changed_body(row: PlanRow, settings: RouteSettings) -> Column:
    """The body of a message as it leaves by its route; NULL if a change cannot be made."""
    return _converted_body(row, settings, masked_body(row, settings))


def changed(row: PlanRow, settings: RouteSettings) -> PlanRow:
    """The row of a message as it leaves by its route, with the headers that belong to its body."""
    row = masked(row, settings)
    if not settings.steps.values:
        return row
    others = F.filter(row.headers, lambda each: ~each.getField("key").isin(BODY, BODY_TYPES))
    headers = F.concat(others, F.array(header(BODY, settings.converted_kinds(row))))
    return row.replace(
        value=_converted_body(row, settings, row.value),
        headers=F.when(settings.steps(row).isNotNull(), headers).otherwise(row.headers),
    )


def conversion_fault(row: PlanRow, settings: RouteSettings) -> Column:
    """The reason why the conversions of a message's route cannot be made; NULL if they can, or if there are none."""
    kind = F.coalesce(row.header(BODY), F.lit(BodyType.TEXT.value))
    is_plain = kind.isin(BodyType.TEXT.value, BodyType.BYTES.value)
    if settings.converted_json.values:
        is_plain |= settings.converted_json(row).isNotNull()
    body = masked_body(row, settings)
    fault = row.header_view.functions.call("conversion-fault:", settings.steps(row), body)
    before, after = not_converted("\0").split("\0")
    refused = F.concat(F.lit(before), F.substring(kind, 1, LONGEST_REASON), F.lit(after))
    found = F.when(settings.steps(row).isNotNull(), F.when(is_plain, fault).otherwise(refused))
    return F.when(~mask_fails(row, settings), found) if settings.masks.values else found


def _converted_body(row: PlanRow, settings: RouteSettings, body: Column) -> Column:
    return row.header_view.functions.call("convert:", settings.steps(row), body) if settings.steps.values else body
