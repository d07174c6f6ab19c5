"""Names that a JMS field or property has in the headers of a record, whatever the style in which it was published."""

from __future__ import annotations

from collections.abc import Mapping

from routes.properties import SEED_NAMES, JmsType

__all__ = ["SHORT_NAMES", "header_names"]

_JMS = "jms."
SHORT_NAMES: Mapping[str, str] = {_JMS + name: _JMS + short for short, name in SEED_NAMES.items()}
"""Headers of JMS fields in the style `short`, by those in the style `text`."""


def header_names(name: str) -> tuple[str, ...]:
    """Returns the header's own name, and those of the JMS field (`JMSType` or `Type`) or property in all styles."""
    bare = name.removeprefix(_JMS)
    text = _JMS + SEED_NAMES.get(bare, bare)
    typed = (f"{_JMS}{kind}.{text.removeprefix(_JMS)}" for kind in JmsType)
    return tuple(dict.fromkeys([name, text, SHORT_NAMES.get(text, text), *typed]))
