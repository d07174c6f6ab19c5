"""Destinations in the plan: the topics and the headers of published records, and the checks of both.

A record for a sink has its destination in a header.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.message import DESTINATION, LARGE_BYTES, ROUTE, TARGET
from engine.router.plan.bodies import BodyStage
from engine.router.plan.failures import FRAMING_BYTES, NOT_PUBLISHED, FailureCheck, declared_size, measured
from engine.router.plan.headers import header, styled
from engine.router.plan.refusals import Refusals
from engine.router.plan.route_settings import ROUTES, ByBranch, RouteSettings
from engine.router.plan.row import PlanRow
from engine.topologies.library.casts import BINARY, INT, STRING, cast
from routes.model import Publication

__all__ = ["DestinationStage"]


@dataclass(frozen=True, slots=True)
class DestinationStage:
    """Topics and headers of published records, and the checks of what can be published there."""

    settings: RouteSettings
    bodies: BodyStage
    refusals: Refusals

    def checks(self) -> list[FailureCheck]:
        """The checks that these destinations need, in the order in which they are made.

        Without a limit that a journal record could exceed, no size is checked.
        """
        settings = self.settings
        made = [self._address_check()] if settings.templates.values else []
        largest = settings.max_message_bytes + FRAMING_BYTES + settings.growth
        changing = [each.target for each in settings.publications if each.route.mask or each.route.converts]
        # A changed body may be larger than the one in the journal.
        growing = {topic for target in changing for topic in target.topics}
        if limits := {topic: size for topic, size in settings.limits.items() if size < largest or topic in growing}:
            made.append(self._size_check(limits))
        if self.refusals:
            made.append(self._refusal_check())
        return made

    def edited(self, row: PlanRow) -> PlanRow:
        """The row with its headers after the edits of its route."""
        asks_for_body = any(route.edits.paths for route in self.settings.routes)
        body = row.value if asks_for_body else cast(F.lit(None), BINARY)
        edits = self.settings.edits(row)
        return row.replace(headers=row.header_view.functions.call("edited-headers:", row.headers, edits, body))

    def headed(self, row: PlanRow) -> PlanRow:
        """The row with the journal's headers in the configured style.

        Records for sinks keep the journal's style and also carry destination and route, and which publication they are,
        behind the trail that the row has.
        """
        settings = self.settings
        style = styled(row.headers, settings.header_style)
        if not settings.sinks.values:
            return row.replace(headers=style)
        given = settings.sinks(row).isNotNull()
        if style is not row.headers:
            style = F.when(given, row.headers).otherwise(style)
        more = {DESTINATION: settings.address(row), ROUTE: settings.names(row)}
        if settings.numbered.values:
            more[TARGET] = settings.numbered(row)
        trail = F.when(given, F.array(*(header(name, text) for name, text in more.items())))
        if row.trail is not None:
            trail = F.coalesce(F.concat(row.trail, trail), row.trail, trail)
        return row.replace(headers=style, trail=trail)

    def _address_check(self) -> FailureCheck:
        settings = self.settings

        def says(row: PlanRow) -> Column:
            filled = F.substring(F.make_valid_utf8(settings.address(row)), 1, 100)
            unfit = F.concat(F.lit(": '"), filled, F.lit("' is not a destination"))
            why = F.coalesce(unfit, F.lit(": a value is missing or empty"))
            return F.concat(F.lit("the destination "), settings.targets(row), F.lit(" cannot be made"), why)

        def stops(publication: Publication) -> str:
            return f"the destination {publication.target} cannot be made of the message, or is not there"

        return FailureCheck("destination-unresolved", "publish", settings.is_unresolved, says, stops)

    def _size_check(self, limits: Mapping[str, int]) -> FailureCheck:
        """The check of sizes; `limits` has the topics that do not take everything that can be in the journal."""
        settings, bodies = self.settings, self.bodies
        constant_topics = settings.constant_topics.values.items()
        constant = ByBranch(ROUTES, {name: str(limits[topic]) for name, topic in constant_topics if topic in limits})
        chosen = {topic: str(limits[topic]) for topic in settings.topics_to_choose if topic in limits}
        measure = measured if min(limits.values()) < LARGE_BYTES + FRAMING_BYTES + settings.growth else declared_size

        def size(row: PlanRow) -> Column:
            """The size that the record may have after its headers are edited and its body is changed."""
            size = measure(row)
            if settings.changes_bodies:
                left = row.replace(value=bodies.record_value(row))
                size = F.when(bodies.is_changed(row), measured(left)).otherwise(size)
            return size + F.coalesce(cast(settings.growths(row), INT), F.lit(0)) if settings.growth else size

        def allowed(row: PlanRow) -> Column:
            return F.coalesce(constant(row), _looked_up(chosen, settings.topics(row))) if chosen else constant(row)

        def fails(row: PlanRow) -> Column:
            return F.coalesce(size(row) + FRAMING_BYTES > cast(allowed(row), INT), F.lit(False))

        def says(row: PlanRow) -> Column:
            parts = ("the record has ", size(row), " bytes, its topic takes ", allowed(row))
            return F.concat(*(F.lit(part) if isinstance(part, str) else cast(part, STRING) for part in parts))

        def stops(publication: Publication) -> str:
            limit = limits.get(publication.target.topic or "")
            return "the record is larger than its topic takes" + ("" if limit is None else f" ({limit} bytes)")

        return FailureCheck("too-large", "publish", fails, says, stops)

    def _refusal_check(self) -> FailureCheck:
        settings, refusals = self.settings, self.refusals
        places = {":".join(map(str, place)): why for place, why in refusals.messages.items()}

        def why(row: PlanRow) -> Column:
            """The reason; NULL for a message that Kafka takes, as far as is known."""
            place = F.concat_ws(":", *(cast(part, STRING) for part in (row.partition, row.offset, row.copy)))
            return F.coalesce(_looked_up(refusals.topics, settings.topics(row)), _looked_up(places, place))

        def fails(row: PlanRow) -> Column:
            return why(row).isNotNull()

        return FailureCheck(NOT_PUBLISHED, "publish", fails, why, lambda _: "Kafka does not take the record")


def _looked_up(texts: Mapping[str, str], key: Column) -> Column:
    """The text of a key; NULL for any other key."""
    looked_up = cast(F.lit(None), STRING)
    for text in dict.fromkeys(texts.values()):
        keys = [name for name, value in texts.items() if value == text]
        looked_up = F.when(key.isin(*keys), F.lit(text)).otherwise(looked_up)
    return looked_up
