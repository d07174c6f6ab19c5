"""Soft failures: the checks of a message as conditions over its row, and the treatment of messages that fail one.

Every failure has a reason (also the label of the metric), a stage, and a sentence. Headers of a dead letter have the
names of Kafka Connect where it defines one, so that tools for Kafka Connect can read them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.errors import SoftFailureError
from engine.message import LARGE_BYTES, SIZE, TARGET
from engine.printable import LONGEST_REASON
from engine.router.plan.headers import header, position
from engine.router.plan.language import field_text
from engine.router.plan.route_settings import ROUTES, ByBranch, RouteSettings
from engine.router.plan.row import PlanFunction, PlanRow
from engine.telemetry.metrics import UNMATCHED
from engine.topologies.library.casts import INT, STRING, STRINGS, cast, from_json, try_cast
from routes.model import Policy, Publication

__all__ = [
    "CHECKS",
    "FRAMING_BYTES",
    "NOT_PUBLISHED",
    "UNMATCHED",
    "FailureCheck",
    "FailureStage",
    "StoppedByPolicyError",
    "declared_size",
    "measured",
    "stopped_by_policy",
]

CHECKS = "checks"
"""Name of the split whose branches are the checks: a message takes the branch of the first check that it fails."""

NOT_PUBLISHED = "not-published"
"""Reason of a message that Kafka does not take while the router runs. It stops no router, whatever the policy."""

_STOP = "jms-bridge:stop:"
"""Prefix of the text of the error that ends a query by policy `stop`."""

FRAMING_BYTES = 4096
"""Bytes that the bridge's own headers and Kafka's framing may add to the journal record."""

_KEPT_BYTES = 64 * 1024
"""Bytes kept, at most, of a body that is too large for the dead-letter topic."""


class StoppedByPolicyError(SoftFailureError):
    """A message failed softly, and the policy of its route is `stop`."""

    def __init__(self, route: str, destination: str, reason: str, position: str, detail: str) -> None:
        self.route, self.destination, self.reason, self.position = route, destination, reason, position
        super().__init__(
            f"route {route!r} cannot take the message at {position}: {detail} ({reason}). "
            "Correct the route, or set on-soft-failure to skip or dead-letter for it, and start again: "
            "the message is still in the journal"
        )


@dataclass(frozen=True, slots=True)
class FailureCheck:
    """Check of a message before it is published; a message that fails it fails softly."""

    reason: str
    """Name of the check, and the reason in dead letters and metrics."""
    stage: str
    """Stage of the flow: `convert`, `key` or `publish`."""
    fails: PlanFunction
    """True for a row that fails the check. The function gets the row with the key already chosen."""
    says: PlanFunction
    """Sentence for the dead letter about a row that fails the check."""
    stops: Callable[[Publication], str]
    """The sentence for the error that stops the query: without details of the message."""


def declared_size(row: PlanRow) -> Column:
    """Size in bytes of a record that has the header of large records; NULL for all others, below `LARGE_BYTES`."""
    return try_cast(row.header(SIZE), INT)


def measured(row: PlanRow) -> Column:
    """Size in bytes of key, value and headers, counted for each record."""
    zero = F.lit(0)
    in_headers = F.aggregate(
        row.headers,
        zero,
        lambda total, item: (
            total + F.octet_length(item.getField("key")) + F.coalesce(F.octet_length(item.getField("value")), zero)
        ),
    )
    parts = (F.octet_length(row.source_key), F.octet_length(row.value), in_headers)
    first, *others = (F.coalesce(part, zero) for part in parts)
    return sum(others, first)


@dataclass(frozen=True, slots=True)
class FailureStage:
    """Treatment of messages that fail a check, or that no route takes."""

    settings: RouteSettings
    checks: tuple[FailureCheck, ...]
    """All checks, in the order in which they are made."""

    @property
    def policies(self) -> set[str]:
        """The policies that failed messages can come under."""
        used = set(self.settings.policies.values.values())
        return used | {Policy.DEAD_LETTER} if self._never_stops is not None and Policy.STOP in used else used

    def policy(self, row: PlanRow) -> Column:
        """The policy of a failed message: that of its route, but `dead-letter` where that would stop the router."""
        chosen = self.settings.policies(row)
        if self._never_stops is None:
            return chosen
        stops = (row.branch(CHECKS) == self._never_stops) & (chosen == Policy.STOP.value)
        return F.when(stops, F.lit(Policy.DEAD_LETTER.value)).otherwise(chosen)

    def dead_letter(self, row: PlanRow, now: Column) -> PlanRow:
        """The row as a dead letter: the message as it was read, and headers about its failure.

        A message that exceeds the limit of the dead-letter topic loses the end of its body, and also its headers if key
        and headers exceed half of the limit; `jmsbridge.truncated` then tells the original size in bytes.
        """
        limit = self.settings.letter_limit
        more = self._error_headers(row, now)
        if limit is None or limit >= self.settings.max_message_bytes + FRAMING_BYTES:
            return row.replace(key=row.source_key, trail=more)
        # `measured` costs time for every record: it needs a function that Spark generates no code for.
        size = measured(row) if limit < LARGE_BYTES + FRAMING_BYTES else declared_size(row)
        too_large = F.coalesce(size + FRAMING_BYTES > limit, F.lit(False))
        kept = min(_KEPT_BYTES, limit // 4)
        has_large_headers = size - F.octet_length(row.value) > limit // 2
        headers = F.when(too_large & has_large_headers, F.lit(None)).otherwise(row.headers)
        cut = F.array(header("jmsbridge.truncated", cast(size, STRING)))
        return row.replace(
            key=row.source_key,
            value=F.when(too_large, F.substring(row.value, 1, kept)).otherwise(row.value),
            headers=headers,
            trail=F.when(too_large, F.concat(more, cut)).otherwise(more),
        )

    def _error_headers(self, row: PlanRow, now: Column) -> Column:
        """Headers of a dead letter about its failure, as an array."""
        stages = ByBranch(CHECKS, {check.reason: check.stage for check in self.checks})
        why = self._reason(row)
        texts = {
            "jmsbridge.reason": why,
            "jmsbridge.route": F.coalesce(self.settings.names(row), F.lit("")),
            "jmsbridge.time": _iso(now),
            "__connect.errors.topic": row.topic,
            "__connect.errors.partition": cast(row.partition, STRING),
            "__connect.errors.offset": cast(row.offset, STRING),
            "__connect.errors.stage": F.coalesce(stages(row), F.lit("match")),
            "__connect.errors.exception.class.name": F.concat(F.lit("jmsbridge."), why),
            "__connect.errors.exception.message": self._sentence(row),
        }
        if self.settings.numbered.values:
            texts[TARGET] = F.coalesce(self.settings.numbered(row), F.lit(""))
        return F.array(*(header(name, text) for name, text in texts.items()))

    def stop_message(self, row: PlanRow) -> Column:
        """The text of the error that stops the query: `_STOP`, then JSON with its parts."""
        # Texts are made here, all but the position, so that Spark generates little code for them into the routing.
        known = [
            json.dumps(
                {
                    "route": publication.route.name,
                    "destination": str(publication.target),
                    "reason": check.reason,
                    "detail": check.stops(publication),
                }
            )[:-1]
            for check in self.checks
            for publication in self.settings.publications
        ]
        texts = from_json(F.lit(json.dumps(known)), STRINGS)
        index = row.branch(CHECKS) * len(self.settings.publications) + row.branch(ROUTES)
        return F.concat(F.lit(_STOP), F.get(texts, index), F.lit(', "position": "'), position(row), F.lit('"}'))

    def _reason(self, row: PlanRow) -> Column:
        values = ByBranch(CHECKS, {check.reason: check.reason for check in self.checks})
        return F.coalesce(values(row), F.lit(UNMATCHED))

    def _sentence(self, row: PlanRow) -> Column:
        given = F.substring(F.make_valid_utf8(field_text(row.header_view, "JMSDestination")), 1, LONGEST_REASON)
        text = F.concat(F.lit("no route wants a message to "), F.coalesce(given, F.lit("no destination")))
        for index, check in enumerate(self.checks):
            text = F.when(row.branch(CHECKS) == index, check.says(row)).otherwise(text)
        return F.coalesce(text, self._reason(row))

    @property
    def _never_stops(self) -> int | None:
        """Index of the check whose failures stop no router; None without it."""
        return next((index for index, check in enumerate(self.checks) if check.reason == NOT_PUBLISHED), None)


def stopped_by_policy(text: str) -> StoppedByPolicyError | None:
    """The error that `stop_message` made the text for; None for a text with another origin."""
    # Spark's text about any failure of a query shows its plan, which has the constant in front of an expression.
    start = text.find(_STOP + "{")
    if start < 0:
        return None
    fields, _ = json.JSONDecoder().raw_decode(text, start + len(_STOP))
    return StoppedByPolicyError(
        *(str(fields[name]) for name in ("route", "destination", "reason", "position", "detail"))
    )


def _iso(milliseconds: Column) -> Column:
    """The time as ISO 8601 text in UTC, such as `2026-11-21T05:50:52.123Z`, in any time zone of the session."""
    utc = F.to_utc_timestamp(F.timestamp_millis(milliseconds), F.current_timezone())
    return F.date_format(utc, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
