"""Keys in the plan: the values that they are taken from, and the checks of these."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.router.plan.failures import FailureCheck
from engine.router.plan.language import declared_type, text_of
from engine.router.plan.route_settings import JOURNAL_KEY, RouteSettings
from engine.router.plan.row import PlanRow
from engine.topologies.library.casts import STRING, cast
from engine.topologies.library.row import JvmFunctions
from routes.keys.pattern import plain_characters
from routes.model import Publication

__all__ = ["KeyStage", "key_check"]

_NEITHER = "is neither a number nor text that matches routing.key-pattern"


@dataclass(frozen=True, slots=True)
class KeyStage:
    """Choice of the key of each message, and the checks of chosen keys."""

    settings: RouteSettings

    def checks(self) -> list[FailureCheck]:
        """The checks of keys that these routes need, in the order in which they are made."""
        return [self._found(), *([self._valid()] if self.settings.configured_keys.values else [])]

    def chosen(self, row: PlanRow) -> Column:
        """The key of a message as its route says; NULL if there is no value to take it from, or an empty one."""
        names = self.settings.keys
        *others, last = dict.fromkeys(names.values.values())
        chosen = _key(row, last)
        for name in others:
            chosen = F.when(names(row) == name, _key(row, name)).otherwise(chosen)
        return F.nullif(chosen, F.lit(""))

    def _found(self) -> FailureCheck:
        names = self.settings.keys

        def fails(row: PlanRow) -> Column:
            missing = row.key.isNull()
            return missing & (names(row) != JOURNAL_KEY) if JOURNAL_KEY in names.values.values() else missing

        def says(row: PlanRow) -> Column:
            return F.concat(F.lit("there is no value under '"), names(row), F.lit("' to take the key from"))

        def stops(publication: Publication) -> str:
            return f"there is no value under '{names.values[publication.name]}' to take the key from"

        return FailureCheck("key-not-found", "key", fails, says, stops)

    def _valid(self) -> FailureCheck:
        settings, names = self.settings, self.settings.configured_keys

        def kind(row: PlanRow) -> Column:
            """Declared type of the property that the key was taken from."""
            *others, last = dict.fromkeys(names.values.values())
            declared = declared_type(row.header_view, last)
            for name in others:
                declared = F.when(names(row) == name, declared_type(row.header_view, name)).otherwise(declared)
            return declared

        def fails(row: PlanRow) -> Column:
            fails = ~key_check(row.header_view.functions, settings.key_pattern, kind(row), row.key)
            return fails if len(names.values) == len(settings.publications) else names(row).isNotNull() & fails

        def says(row: PlanRow) -> Column:
            shown = F.substring(F.make_valid_utf8(cast(row.key, STRING)), 1, 100)
            return F.concat(F.lit("the key '"), shown, F.lit("' from '"), names(row), F.lit(f"' {_NEITHER}"))

        def stops(publication: Publication) -> str:
            return f"the key from '{settings.keys.values[publication.name]}' {_NEITHER}"

        return FailureCheck("key-invalid", "key", fails, says, stops)


def _key(row: PlanRow, name: str) -> Column:
    return cast(row.source_key, STRING) if name == JOURNAL_KEY else text_of(row, row.header_view, name)


def key_check(functions: JvmFunctions, pattern: str, kind: Column, key: Column) -> Column:
    """True for a key (binary) that is a number, by its declared type, or text that the pattern matches as a whole."""
    letters, others = plain_characters(pattern)
    check = json.dumps({"pattern": pattern, "letters": letters, "others": others})
    return functions.call(f"key-check:{check}", kind, key)
