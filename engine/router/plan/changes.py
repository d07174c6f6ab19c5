"""Changes of bodies that leave, in the plan: mask, conversions and schema of a route, and the claim on a large body."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.claims.claim import CLAIM
from engine.message import BODY, BODY_TYPES, BodyType
from engine.printable import LONGEST_REASON
from engine.router.plan.headers import header
from engine.router.plan.masks import is_masked, mask_fails, masked_body, masked_headers
from engine.router.plan.route_settings import RouteSettings
from engine.router.plan.row import PlanRow
from engine.router.plan.schemas import writing_fault, written_body
from engine.topologies.library.casts import BINARY, INT, cast
from routes.body_steps import not_converted

__all__ = ["changed", "changed_body", "claimed", "conversion_fault", "is_changed", "leaving"]


def is_changed(row: PlanRow, settings: RouteSettings) -> Column:
    """True for a message whose route changes bodies, or keeps this one as a file."""
    changes = _is_rewritten(row, settings)
    return changes | _is_large(row, settings, row.value) if settings.claims.values else changes


def leaving(row: PlanRow, settings: RouteSettings) -> Column:
    """The body as mask, conversions and schema of the message's route leave it; NULL if there is none, or cannot be."""
    body = written_body(row, settings, _stepped(row, settings, masked_body(row, settings)))
    can_be = settings.converted_kinds(row).isNull() | _can_be_converted(row, settings)
    return F.when(_is_rewritten(row, settings) & can_be, body)


def changed_body(row: PlanRow, settings: RouteSettings) -> Column:
    """The value of the record that leaves by the message's route; as it came if a change cannot be made."""
    body = _left(row)
    return _left_in_record(row, settings, body) if settings.claims.values else body


def changed(row: PlanRow, settings: RouteSettings) -> PlanRow:
    """The row of a message as it leaves by its route, with the headers that belong to its body."""
    headers = masked_headers(row, settings) if settings.masks.values else row.headers
    if settings.converted_kinds.values:
        kind = settings.converted_kinds(row)
        others = F.filter(headers, lambda each: ~each.getField("key").isin(BODY, BODY_TYPES))
        headers = F.when(kind.isNotNull(), F.concat(others, F.array(header(BODY, kind)))).otherwise(headers)
    return (
        row.replace(value=_left(row), headers=headers) if headers is not row.headers else row.replace(value=_left(row))
    )


def claimed(row: PlanRow, settings: RouteSettings) -> PlanRow:
    """The row of a changed message, whose body is kept as a file if it is larger than its route has in records.

    The trail needs the claim, which is there when the file is: no record is sent before.
    """
    claim = row.header_view.functions.call(f"claim:{settings.claim_folder}", row.value)
    trail = F.when(_is_large(row, settings, row.value), F.array(header(CLAIM, claim)))
    return row.replace(value=_left_in_record(row, settings, row.value), trail=trail)


def conversion_fault(row: PlanRow, settings: RouteSettings) -> Column:
    """The reason why a body cannot be converted, or written by a schema, as its route says; NULL if it can."""
    functions = row.header_view.functions
    body = masked_body(row, settings)
    faults = []
    if settings.steps.values:
        faults.append(functions.call("conversion-fault:", settings.steps(row), body))
    if settings.written.values:
        faults.append(writing_fault(row, settings, _stepped(row, settings, body)))
    before, after = not_converted("\0").split("\0")
    refused = F.concat(F.lit(before), F.substring(row.header(BODY), 1, LONGEST_REASON), F.lit(after))
    fault = F.when(_can_be_converted(row, settings), F.coalesce(*faults)).otherwise(refused)
    found = F.when(settings.converted_kinds(row).isNotNull(), fault)
    return F.when(~mask_fails(row, settings), found) if settings.masks.values else found


def _left(row: PlanRow) -> Column:
    return row.value if row.left is None else F.coalesce(row.left, row.value)


def _is_rewritten(row: PlanRow, settings: RouteSettings) -> Column:
    return is_masked(row, settings) | settings.converted_kinds(row).isNotNull()


def _can_be_converted(row: PlanRow, settings: RouteSettings) -> Column:
    """True for the kinds of bodies that the conversions and the schema of a route take."""
    kind = F.coalesce(row.header(BODY), F.lit(BodyType.TEXT.value))
    is_plain = kind.isin(BodyType.TEXT.value, BodyType.BYTES.value)
    return is_plain | settings.converted_json(row).isNotNull() if settings.converted_json.values else is_plain


def _stepped(row: PlanRow, settings: RouteSettings, body: Column) -> Column:
    return row.header_view.functions.call("convert:", settings.steps(row), body) if settings.steps.values else body


def _is_large(row: PlanRow, settings: RouteSettings, body: Column) -> Column:
    return F.coalesce(F.octet_length(body) > cast(settings.claims(row), INT), F.lit(False))


def _left_in_record(row: PlanRow, settings: RouteSettings, body: Column) -> Column:
    # Not NULL, with which a compacted topic would delete the key.
    return F.when(_is_large(row, settings, body), cast(F.lit(""), BINARY)).otherwise(body)
