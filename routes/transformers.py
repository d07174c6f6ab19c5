"""Choice of the transformer for an AMQP message: values that the configuration makes and the AMQP connector uses.

A transformer turns the bytes of an AMQP message into a JMS message (inbound) or back (outbound). Names, properties and
defaults are those of SwiftMQ; `docs/connectors/amqp.md` says what each does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["CLASSES", "NAME_TRANSLATORS", "Transformer", "TransformerSettings", "Transformers"]

_PACKAGE = "com.swiftmq.impl.amqp.amqp.v01_00_00.transformer"


def _spellings(name: str, *suffixes: str) -> tuple[str, ...]:
    """Returns all spellings of a name: short, as a class of SwiftMQ, and as that class's full name."""
    classes = [f"{name}{suffix}" for suffix in suffixes]
    return (name, *classes, *(f"{_PACKAGE}.{each}" for each in classes))


NAME_TRANSLATORS: Mapping[str, str] = {
    spelling: name
    for name in ("InvalidToUnderscore", "UnderscoreToDash", "Null")
    for spelling in _spellings(name, "NameTranslator")
}
"""Every spelling of the built-in name translators, mapped to the short one."""


class Transformer(StrEnum):
    """The built-in transformers."""

    JMS_MAPPING = "JMSMapping"
    """Sections of AMQP and JMS fields are mapped to each other."""
    AMQP_NATIVE = "AMQPNative"
    """The encoded AMQP message is the body of a BytesMessage."""


CLASSES: Mapping[str, Transformer] = {
    spelling: each for each in Transformer for spelling in _spellings(each, "InboundTransformer", "OutboundTransformer")
}
"""Every spelling of the transformers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerSettings:
    """A transformer with its properties; each direction uses those that it knows."""

    transformer: Transformer = Transformer.JMS_MAPPING
    name_translator: str | None = None
    """None: InvalidToUnderscore inbound, Null outbound."""
    prefix_vendor: str = "JMS_AMQP_"
    prefix_delivery_annotations: str = "DA_"
    prefix_message_annotations: str = "MA_"
    prefix_footer: str = "FT_"
    default_delivery_mode: str = "PERSISTENT"
    """PERSISTENT or NON_PERSISTENT."""
    default_priority: int = 4
    default_ttl_ms: int = 0
    """Time to live; 0: messages do not expire."""
    overwrite_message_id: bool = False
    jms_type_property: str | None = None
    """Application property that holds the JMSType; None: message annotation `x-opt-jms-type`."""
    message_format: int = 0
    """Message format id that the transformer is for."""
    destinations: frozenset[str] = frozenset()
    """Destinations that the transformer is for, `queue:NAME` or `topic:NAME`; empty: all that no other is for."""


@dataclass(frozen=True, slots=True)
class Transformers:
    """All transformers of a source or sink; the first that fits is taken."""

    declared: tuple[TransformerSettings, ...] = ()

    @property
    def all(self) -> tuple[TransformerSettings, ...]:
        """The declared transformers and the default one: every result that `settings` can return."""
        return (*self.declared, _DEFAULT)

    def settings(self, destination: str, message_format: int) -> TransformerSettings | None:
        """Returns the transformer for a destination in canonical spelling; None if the message format has none.

        A transformer that names the destination comes first, then one that names none, then for format 0 the default
        one; so for format 0 there always is one.
        """
        fits = [each for each in self.declared if each.message_format == message_format]
        for each in fits:
            if destination in each.destinations:
                return each
        for each in fits:
            if not each.destinations:
                return each
        return _DEFAULT if message_format == 0 else None


_DEFAULT = TransformerSettings()
