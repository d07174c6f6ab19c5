"""Kinds of values in the edits of headers: names of headers, patterns of names, and texts made of the message."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from routes.keys.addresses import parse_template
from routes.keys.values import BadValueError, ValueKind, one_of, parse_text
from routes.predicate.nodes import PATHS
from routes.properties import HEADER_FIELDS, SEED_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from routes.targets import Template

__all__ = ["FIXED", "HEADER_NAME", "HEADER_PATTERNS", "HEADER_TEXT", "constant_fault", "header_name"]

_OWN = ("jmsbridge", "JMS_JmsBridge")
FIXED = f"JMS(?!_)|{'|'.join(_OWN)}"
"""Regular expression of the beginnings of names that are not a sender's: JMS fields, and the bridge's own."""

_FORMS: Mapping[str, tuple[str, str]] = {
    "JMSCorrelationID": (".+", "a text"),
    "JMSDeliveryMode": ("(?:NON_)?PERSISTENT", "PERSISTENT or NON_PERSISTENT"),
    "JMSPriority": ("[0-9]", "a number from 0 to 9"),
    "JMSReplyTo": ("(?:queue|topic):.+", "queue:NAME or topic:NAME"),
    "JMSType": (".+", "a text"),
    "JMSXGroupID": (".+", "a text"),
    "JMSXGroupSeq": ("[0-9]{1,9}", "a whole number"),
}
"""JMS fields that may be edited, each with the regular expression of its values, and their description."""

_PREFIX = "msg.header."
_AS_IN = 'as in region, CorrelationId, x-tenant or "order no"'


def header_name(text: str) -> str:
    """Returns the JMS name of a header that may be edited, from a spelling that may stand behind `msg.header.`.

    Raises:
        BadValueError: the text is not a name, or that of a header which belongs to JMS, a provider or the bridge.
    """
    name = _plain(text)
    if not name:
        raise BadValueError("the name of the header is missing", _AS_IN)
    parse_text(name)
    if name.startswith(("msg.", *PATHS)):
        raise BadValueError(f"'{text}' is not the name of a header", _AS_IN)
    _refuse_own(name)
    if name in HEADER_FIELDS and name not in _FORMS:
        hint = f"of the JMS fields, {one_of(list(_FORMS)).replace(' or ', ' and ')} can be edited"
        raise BadValueError(f"{name} belongs to the message as it came, and stays as it is", hint)
    if name.startswith("JMS"):
        # It brings the parser, which most commands do not use.
        from routes.predicate.doubts import unknown_field

        if told := unknown_field(name):
            raise BadValueError(*told)
    return name


def constant_fault(name: str, text: str) -> str | None:
    """Returns the fault of a constant for a header; None if the header may have it."""
    form, described = _FORMS.get(name, ("(?s:.*)", ""))
    return None if re.fullmatch(form, text) else f"'{text}' is not a value of {name}: {described}"


def _plain(text: str) -> str:
    name = text.removeprefix(_PREFIX)
    if len(name) > 1 and name[0] == name[-1] == '"':
        return name[1:-1].replace('""', '"')
    return SEED_NAMES.get(name, name)


def _refuse_own(name: str) -> None:
    if name.startswith(_OWN):
        beginning = next(each for each in _OWN if name.startswith(each))
        raise BadValueError(f"'{name}' cannot be edited", f"names that begin with {beginning} belong to the bridge")


def _parse_patterns(text: str) -> tuple[str, ...]:
    parse_text(text)
    patterns: list[str] = []
    offset = 0
    for part in text.split(","):
        start = offset + len(part) - len(part.lstrip())
        offset += len(part) + 1
        try:
            pattern = _pattern(part.strip())
        except BadValueError as error:
            raise BadValueError(str(error), error.hint, start) from None
        if pattern in patterns:
            raise BadValueError(f"'{part.strip()}' is listed twice", "name each header once", start)
        patterns.append(pattern)
    return tuple(patterns)


def _pattern(text: str) -> str:
    """The name of a header, or the pattern of names, which has a `*`."""
    if "*" not in text:
        return header_name(text)
    pattern = _plain(text)
    _refuse_own(pattern)
    if pattern.startswith("JMS") and not pattern.startswith("JMS_"):
        raise BadValueError(f"'{pattern}' stands for properties, and none begins like this", "name each JMS field")
    return pattern


def _parse_text(text: str) -> Template:
    return parse_template(parse_text(text))


HEADER_NAME = ValueKind("header", "the name of a header", header_name)
HEADER_PATTERNS = ValueKind("list of headers", "names of headers with commas between them, as in x-*", _parse_patterns)
HEADER_TEXT = ValueKind("template", "a text, as in eu-${msg.header.region}", _parse_text)
