"""Bodies in the plan: mask, conversions and schema of a route, the bodies that they refuse, and claims on large ones.

The JVM gets masks and schemas apart from the plan, which has only their names: Spark prints plans, and masks have
secrets.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from engine.claims.claim import CLAIM
from engine.message import BODY, BODY_TYPES, BodyType
from engine.printable import LONGEST_REASON
from engine.router.plan.failures import FailureCheck
from engine.router.plan.headers import header
from engine.router.plan.route_settings import RouteSettings
from engine.router.plan.row import PlanRow
from engine.router.plan.schemas import schema_mark
from engine.topologies.library.casts import BINARY, INT, STRING, cast
from routes.body_steps import not_converted
from routes.model import BodyConversion, Publication, Route
from routes.predicate.mask import UNMASKABLE, Mask, too_large
from routes.predicate.nodes import DocumentFormat
from routes.predicate.path_json import path_json

__all__ = ["BodyStage", "mask_json"]

_STRUCTURED = (BodyType.MAP.value, BodyType.STREAM.value, BodyType.OBJECT.value)
"""Kinds of body that are JSON if their source could read them."""


@dataclass(frozen=True, slots=True)
class BodyStage:
    """Changes that routes make to bodies, and checks of the bodies that they take."""

    settings: RouteSettings

    def checks(self) -> list[FailureCheck]:
        """The checks of bodies that these routes need, in the order in which they are made."""
        settings = self.settings
        made = [self._kind_check()]
        if settings.body_formats.values or settings.masks.values:
            made.append(self._format_check())
        if settings.schemas.values:
            made.append(self._schema_check())
        return made

    def leaving(self, row: PlanRow) -> PlanRow:
        """The row with its body as the message's route leaves it; NULL if nothing changes it, or if that fails."""
        can_be = self.settings.converted_kinds(row).isNull() | self._can_be_converted(row)
        return row.replace(left=F.when(self._is_rewritten(row) & can_be, self._written(row, self._masked(row))))

    def is_changed(self, row: PlanRow) -> Column:
        """True for a message whose route changes bodies, or keeps this one as a file."""
        changes = self._is_rewritten(row)
        return changes | self._is_large(row, row.value) if self.settings.claims.values else changes

    def changed(self, row: PlanRow) -> PlanRow:
        """The row of a message as it leaves by its route, with the headers that belong to its body."""
        headers = self._masked_headers(row) if self.settings.masks.values else row.headers
        if self.settings.converted_kinds.values:
            kind = self.settings.converted_kinds(row)
            kept = F.filter(headers, lambda item: ~item.getField("key").isin(BODY, BODY_TYPES))
            headers = F.when(kind.isNotNull(), F.concat(kept, F.array(header(BODY, kind)))).otherwise(headers)
        value = _left(row)
        return row.replace(value=value) if headers is row.headers else row.replace(value=value, headers=headers)

    def claimed(self, row: PlanRow) -> PlanRow:
        """The row of a changed message, whose body is kept as a file if it is larger than its route has in records.

        The trail needs the claim, which is there when the file is: no record is sent before.
        """
        claim = row.header_view.functions.call(f"claim:{self.settings.claim_folder}", row.value)
        trail = F.when(self._is_large(row, row.value), F.array(header(CLAIM, claim)))
        return row.replace(value=self._in_record(row, row.value), trail=trail)

    def record_value(self, row: PlanRow) -> Column:
        """The value of the record that leaves by the message's route; as it came if a change cannot be made."""
        body = _left(row)
        return self._in_record(row, body) if self.settings.claims.values else body

    def _kind_check(self) -> FailureCheck:
        settings = self.settings

        def is_other(row: PlanRow) -> Column:
            kind = F.coalesce(row.header(BODY), F.lit(BodyType.TEXT.value))
            other = ~kind.isin(BodyType.TEXT.value, BodyType.BYTES.value)
            if settings.any_body.values:
                other &= settings.any_body(row).isNull()
            if not settings.json_body.values:
                return other
            is_json = F.coalesce(F.get_json_object(cast(row.value, STRING), "$").isNotNull(), F.lit(False))
            return other & ~(settings.json_body(row).isNotNull() & kind.isin(*_STRUCTURED) & is_json)

        def fails(row: PlanRow) -> Column:
            other = is_other(row)
            if row.left is None or not settings.converted_kinds.values:
                return other
            return other | (row.left.isNull() & self._conversion_fault(row).isNotNull())

        def says(row: PlanRow) -> Column:
            kind = F.substring(row.header(BODY), 1, LONGEST_REASON)
            other = F.concat(F.lit("the body is of type "), kind, F.lit(", neither text nor bytes"))
            if not settings.converted_kinds.values:
                return other
            return F.when(is_other(row), other).otherwise(self._conversion_fault(row))

        def stops(publication: Publication) -> str:
            steps, schema = publication.route.steps, publication.route.written_schema
            parts = ["the body is neither text nor bytes"]
            parts += [f"not one for the steps {steps}"] if steps else []
            parts += [f"does not fit {schema}"] if schema else []
            return ", or ".join(parts)

        return FailureCheck("body-not-convertible", "convert", fails, says, stops)

    def _format_check(self) -> FailureCheck:
        names, masks = self.settings.body_formats, self.settings.masks

        def fault(row: PlanRow) -> Column:
            """The reason why the body is not of the format that its route names; NULL if it is."""
            fault = F.lit(None).cast("string")
            for name in sorted(set(names.values.values())):
                reason = row.header_view.call(f"body-fault:{name}", row.value)
                fault = F.when(names(row) == name, reason).otherwise(fault)
            return fault

        def fails(row: PlanRow) -> Column:
            wrong = fault(row).isNotNull()
            return wrong | self._mask_fails(row) if masks.values else wrong

        def says(row: PlanRow) -> Column:
            return F.coalesce(fault(row), self._mask_fault(row)) if masks.values else fault(row)

        def stops(publication: Publication) -> str:
            if publication.route.read_as is None:
                return f"{UNMASKABLE}the body is not JSON"
            return f"the body is not {publication.route.read_as}, which in.body or in.schema names"

        return FailureCheck("body-unreadable", "convert", fails, says, stops)

    def _schema_check(self) -> FailureCheck:
        schemas = self.settings.schemas

        def fault(row: PlanRow) -> Column:
            """The reason why the body does not fit the schema of its route; NULL if it does, or if there is none."""
            fault = self._by_schema(row, "schema-fault", row.headers, schemas(row), row.value)
            return F.when(schemas(row).isNotNull(), fault)

        def fails(row: PlanRow) -> Column:
            return fault(row).isNotNull()

        def stops(publication: Publication) -> str:
            return f"the body does not fit {publication.route.schema}, which in.schema names"

        return FailureCheck("body-invalid", "convert", fails, fault, stops)

    def _conversion_fault(self, row: PlanRow) -> Column:
        """The reason why a body cannot be converted, or written by a schema, as its route says; NULL if it can."""
        settings, body = self.settings, self._masked(row)
        faults = []
        if settings.steps.values:
            faults.append(row.header_view.functions.call("conversion-fault:", settings.steps(row), body))
        if settings.written.values:
            faults.append(self._by_schema(row, "writing-fault", settings.written(row), self._stepped(row, body)))
        before, after = not_converted("\0").split("\0")
        refused = F.concat(F.lit(before), F.substring(row.header(BODY), 1, LONGEST_REASON), F.lit(after))
        fault = F.when(self._can_be_converted(row), F.coalesce(*faults)).otherwise(refused)
        fault = F.when(settings.converted_kinds(row).isNotNull(), fault)
        return F.when(~self._mask_fails(row), fault) if settings.masks.values else fault

    def _is_rewritten(self, row: PlanRow) -> Column:
        return self._is_masked(row) | self.settings.converted_kinds(row).isNotNull()

    def _can_be_converted(self, row: PlanRow) -> Column:
        """True for the kinds of bodies that the conversions and the schema of a route take."""
        json_of = self.settings.converted_json
        kind = F.coalesce(row.header(BODY), F.lit(BodyType.TEXT.value))
        is_plain = kind.isin(BodyType.TEXT.value, BodyType.BYTES.value)
        return is_plain | json_of(row).isNotNull() if json_of.values else is_plain

    def _stepped(self, row: PlanRow, body: Column) -> Column:
        steps = self.settings.steps
        return row.header_view.functions.call("convert:", steps(row), body) if steps.values else body

    def _written(self, row: PlanRow, body: Column) -> Column:
        """The converted body as the schema of the message's publication, if any, has it; NULL if it does not fit."""
        written, body = self.settings.written, self._stepped(row, body)
        if not written.values:
            return body
        return F.when(written(row).isNotNull(), self._by_schema(row, "written", written(row), body)).otherwise(body)

    def _by_schema(self, row: PlanRow, function: str, *arguments: Column) -> Column:
        return row.header_view.functions.call(f"{function}:{schema_mark(self.settings.publications)}", *arguments)

    def _is_large(self, row: PlanRow, body: Column) -> Column:
        return F.coalesce(F.octet_length(body) > cast(self.settings.claims(row), INT), F.lit(False))

    def _in_record(self, row: PlanRow, body: Column) -> Column:
        # Not NULL, with which a compacted topic would delete the key.
        return F.when(self._is_large(row, body), cast(F.lit(""), BINARY)).otherwise(body)

    def _is_masked(self, row: PlanRow) -> Column:
        """True for a message whose route has a mask."""
        return self.settings.masks(row).isNotNull()

    def _masked(self, row: PlanRow) -> Column:
        """The body of a message as the mask of its route, if any, leaves it; NULL if that cannot be applied."""
        masks = self.settings.masks
        if not masks.values:
            return row.value
        body = row.header_view.call(f"mask:{_masks(self.settings.routes)}", masks(row), row.value)
        return F.when(self._is_masked(row), body).otherwise(row.value)

    def _masked_headers(self, row: PlanRow) -> Column:
        """The headers of a message with the types that its body has as the mask of its route, if any, leaves it."""
        masked = [publication for publication in self.settings.publications if publication.route.mask]
        if all(publication.conversion is BodyConversion.AS_IS for publication in masked):
            return row.headers
        function = f"mask-types:{_masks(self.settings.routes)}"
        kind, given = row.header(BODY), row.header(BODY_TYPES)
        types = row.header_view.functions.call(function, self.settings.masks(row), row.value, kind, given)
        headers = F.transform(
            row.headers,
            lambda item: F.when(item.getField("key") == BODY_TYPES, header(BODY_TYPES, types)).otherwise(item),
        )
        has_types = given.isNotNull() & kind.isin(BodyType.MAP.value, BodyType.STREAM.value)
        return F.when(has_types, headers).otherwise(row.headers)

    def _mask_fails(self, row: PlanRow) -> Column:
        """True for a message to which the mask of its route cannot be applied."""
        is_changed = F.lit(False) if row.left is None else row.left.isNotNull()
        return self._is_masked(row) & ~is_changed & self._masked(row).isNull()

    def _mask_fault(self, row: PlanRow) -> Column:
        """The reason why the mask of a message's route cannot be applied, for one to which it cannot."""
        fault = row.header_view.call(f"body-fault:{DocumentFormat.JSON}", row.value)
        return F.concat(F.lit(UNMASKABLE), F.coalesce(fault, F.lit(too_large(self.settings.bounds))))


def _left(row: PlanRow) -> Column:
    return row.value if row.left is None else F.coalesce(row.left, row.value)


def _masks(routes: Iterable[Route]) -> str:
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
