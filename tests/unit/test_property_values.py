"""Values of properties in frames and AMQP: a text that is not a value of its type stays a text, as for predicates."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.amqp.conversion import property_of, to_property
from engine.connectors.nats import json_frame, typed_frame
from engine.connectors.nats.header_frame import HeaderFrame
from routes.predicate.values import read
from routes.properties import JmsType, Property


@pytest.mark.parametrize("codec", [json_frame, typed_frame])
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1_000", JmsType.INT),
        (" 1", JmsType.LONG),
        ("\u0664", JmsType.SHORT),
        ("300", JmsType.BYTE),
        ("9223372036854775808", JmsType.LONG),
        ("9" * 5000, JmsType.LONG),
        ("1_0.5", JmsType.DOUBLE),
        ("nan", JmsType.FLOAT),
        ("yes", JmsType.BOOLEAN),
    ],
)
def test_what_is_no_value_of_its_type_is_a_text(codec: ModuleType, text: str, kind: JmsType) -> None:
    found = codec.decode(codec.encode(HeaderFrame(b"", {"a": Property(text, kind)}))).headers
    assert found == {"a": Property(text, JmsType.STRING)}
    assert property_of(Property(text, kind)) == text


@pytest.mark.parametrize("codec", [json_frame, typed_frame])
@pytest.mark.parametrize("truth", [True, False])
def test_a_boolean_is_one_in_any_case_of_letters(codec: ModuleType, truth: bool) -> None:
    given_ = Property(str(truth).upper(), JmsType.BOOLEAN)
    assert codec.decode(codec.encode(HeaderFrame(b"", {"a": given_}))).headers == {"a": Property.of(truth)}
    assert property_of(given_) is truth


@given(
    st.text(st.sampled_from("0123456789+-._eE NaInfity\u0664trueFALS"), min_size=1, max_size=12),
    st.sampled_from([kind for kind in JmsType if kind not in (JmsType.STRING, JmsType.BYTES)]),
)
def test_a_value_is_sent_as_what_predicates_see(text: str, kind: JmsType) -> None:
    given_ = Property(text, kind)
    seen = read(given_)
    sent = to_property(property_of(given_), exact=True)
    framed = typed_frame.decode(typed_frame.encode(HeaderFrame(b"", {"a": given_}))).headers["a"]
    for found in (sent, framed):
        if seen is None:
            assert found == Property(text, JmsType.STRING)
        elif kind is not JmsType.FLOAT or found.type is kind:
            # As texts, since NaN is not equal to itself.
            assert str(read(found)) == str(seen)
