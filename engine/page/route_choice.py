"""Filter and order of the rows on the routes page, as its URL gives them: `/routes?filter=orders&sort=-rate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from engine.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["RouteChoice", "RouteHeading"]

Row = dict[str, Any]
_ORDER = "order"
_LONGEST = 200


class _Column(NamedTuple):
    title: str
    value: Callable[[Row], Any] | None
    """Value by which rows are sorted; None for a column that sorts nothing."""
    is_number: bool = False
    """True if the greatest value comes first at the first choice."""
    shares: bool = False
    """True if it stands in the column of the page that the one before it has."""


_COLUMNS: Mapping[str, _Column] = {
    _ORDER: _Column("Order", lambda row: row["number"]),
    "name": _Column("Route", lambda row: row["route"].name.casefold()),
    "rate": _Column("Now", lambda row: row["rate"] or 0.0, is_number=True, shares=True),
    "matches": _Column("Matches", None),
    "to": _Column("To", lambda row: ", ".join(map(str, row["route"].targets))),
    "routed": _Column("Routed", lambda row: row["routed"] or 0.0, is_number=True),
    "failed": _Column("Failed", lambda row: sum(row["failures"].values()), is_number=True),
    "error": _Column(
        "Last error", lambda row: row["error"]["time_ms"] if row["error"] else 0, is_number=True, shares=True
    ),
}


@dataclass(frozen=True, slots=True)
class RouteHeading:
    """Heading of values on the page; a column may have several."""

    title: str
    name: str
    """Value of the parameter `sort` for the order that the page has at the first choice; empty for none."""
    href: str
    """URL of the page sorted by the values, the other way round if it is already; empty if it cannot be sorted."""
    sorted: str
    """Value of `aria-sort`; empty unless the page is sorted by the values."""


@dataclass(frozen=True, slots=True)
class RouteChoice:
    """Choice of rows: those that have each word of a text, ignoring case, sorted by a column."""

    filter: str = ""
    sort: str = _ORDER
    """Name of a column, after `-` if the greatest value comes first."""

    @staticmethod
    def of(query: Mapping[str, str]) -> RouteChoice:
        """Reads the parameters `filter` and `sort` of a URL; UsageError for a column that does not exist."""
        sort = query.get("sort", "").strip() or _ORDER
        names = [name for name, column in _COLUMNS.items() if column.value]
        if sort.removeprefix("-") not in names:
            msg = f"sort {sort[:_LONGEST]!r}: expected one of {', '.join(names)}, after - for the greatest first"
            raise UsageError(msg)
        return RouteChoice(query.get("filter", "").strip(), sort)

    def rows(self, rows: Iterable[Row]) -> list[Row]:
        """Returns the chosen rows in their order; those with equal values stay in the order of the routes."""
        words = self.filter.casefold().split()
        found = [row for row in rows if all(word in _text(row) for word in words)]
        value = _COLUMNS[self.sort.removeprefix("-")].value
        assert value is not None, "it was checked"
        return sorted(found, key=value, reverse=self.sort.startswith("-"))

    def columns(self) -> list[list[RouteHeading]]:
        """Returns the headings of each column of the page."""
        found: list[list[RouteHeading]] = []
        for name, column in _COLUMNS.items():
            if not column.shares:
                found.append([])
            found[-1].append(self._heading(name, column))
        return found

    def _heading(self, name: str, column: _Column) -> RouteHeading:
        first, other = (f"-{name}", name) if column.is_number else (name, f"-{name}")
        href = "/routes?" + urlencode({"filter": self.filter, "sort": other if self.sort == first else first})
        is_sorted = self.sort.removeprefix("-") == name
        direction = "descending" if self.sort.startswith("-") else "ascending"
        if column.value is None:
            return RouteHeading(column.title, "", "", "")
        return RouteHeading(column.title, first, href, direction if is_sorted else "")


def _text(row: Row) -> str:
    route = row["route"]
    exclude = route.exclude.text if route.exclude else ""
    reasons = " ".join(row["failures"])
    parts = (route.name, route.include.text, exclude, *map(str, route.targets), str(route.key or ""), row["state"])
    return " ".join((*parts, reasons)).casefold()
