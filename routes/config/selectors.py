"""Checks of selectors, which the broker reads: errors against JMS, and warnings of what only a broker can judge.

Selectors are parsed as predicates. A broker may accept texts that are no predicates: Artemis has `hyphenated_props:`,
`XPATH` and comments, a name in double quotes, and calculates with texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from routes.config.values import BadValueError, ValueKind
from routes.errors import Fault, Level, PredicateError, PredicateSyntaxError
from routes.predicate.doubts import unknown_fields
from routes.predicate.parser import parse
from routes.properties import SEED_NAMES

if TYPE_CHECKING:
    from routes.config.binding import Settings
    from routes.config.entry import Entry

__all__ = ["SELECTOR", "doubtful_selectors"]

_QUOTED = re.compile(r"'(?:[^']|'')*'?|\"[^\"]*\"?")
_OWN = re.compile(r"(?<![\w$.])msg\.(?:address\b|header\.(?P<header>[\w$]*))|(?P<sign>==|!=|&&|\|\||!)")
_INSTEAD: Mapping[str, str] = {
    "==": "write =, with a text in single quotes: region = 'emea'",
    "!=": "write <>",
    "&&": "write AND",
    "||": "write OR",
    "!": "write NOT",
}
_DIALECT = re.compile(
    r"\s*(?:no_)?(?:hyphenated_props|convert_string_expressions):|\b(?:XPATH|XQUERY)\b|--|/\*|%", re.IGNORECASE
)
"""Syntax that Artemis knows beyond JMS."""
_AMQP = re.compile(r"(?<![\w$.])amqp\.(?=\w)")
"""Names of AMQP fields as Qpid spells them, which an AMQP source translates."""


def _parse_selector(text: str) -> str:
    """Returns the selector unchanged; raises BadValueError if no broker could read it."""
    if not text.strip():
        raise BadValueError("the selector is empty", "remove the line to receive every message")
    if own := _OWN.search(_without_quoted(text)):
        raise BadValueError(f"the broker reads this, and JMS has no {own[0]}", _advice(own), own.start())
    error = _refused(text)
    if isinstance(error, PredicateSyntaxError) and not _DIALECT.search(_without_quoted(text)):
        raise BadValueError(error.fault.message, _hint(error.fault), error.fault.column - 1)
    return text


def doubtful_selectors(settings: Settings) -> None:
    """Warns of selectors that are no JMS, and that the broker may refuse."""
    for name in settings.names("source"):
        entry, selector = settings.entry("source.NAME.selector", name), settings.get("source.NAME.selector", name)
        if entry is None or selector is None:
            continue
        if (error := _refused(selector)) is None:
            _unknown_fields(settings, entry, selector)
            continue
        if entry.secret:
            fault = Fault("the broker may refuse this selector", level=Level.WARNING)
        else:
            message = f"the broker may refuse this selector: {error.fault.message}"
            fault = Fault(message, _hint(error.fault), level=Level.WARNING)
        settings.faults.append(entry.move(fault, 0 if entry.secret else error.fault.column - 1))


def _unknown_fields(settings: Settings, entry: Entry, selector: str) -> None:
    if not entry.secret:
        for doubt in unknown_fields(parse(_AMQP.sub("amqp_", selector))):
            settings.faults.append(entry.fault(doubt.message, doubt.hint, doubt.node.position, Level.WARNING))


def _refused(text: str) -> PredicateError | None:
    try:
        parse(_AMQP.sub("amqp_", text))
    except PredicateError as error:
        return error
    return None


def _without_quoted(text: str) -> str:
    """Returns the text, of the same length, with all that stands in quotes blotted out."""
    return _QUOTED.sub(lambda quoted: "x" * len(quoted[0]), text)


def _advice(own: re.Match[str]) -> str:
    if own["sign"]:
        return _INSTEAD[own["sign"]]
    if own["header"]:
        return f"write {SEED_NAMES.get(own['header'], own['header'])}"
    return "source.NAME.destinations says which queues and topics; a route's in.include can ask for the address"


def _hint(fault: Fault) -> str:
    """Returns the hint, if it advises nothing that only predicates have."""
    return fault.hint if "msg." not in fault.hint and "==" not in fault.hint else "as in region = 'emea' AND amount > 5"


SELECTOR = ValueKind("JMS selector", "a JMS selector", _parse_selector)
