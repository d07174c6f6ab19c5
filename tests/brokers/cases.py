"""The cases of the table that need no Kafka: what a message keeps, and what a source or sink may ask of a broker.

A case notes differences and remarks on its bench. A start that the bridge refuses ends it with HardFailureError.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from engine.connectors.base import NotConnectedError
from engine.message import NO_BODY, NULL_BODY, BodyType, Message
from routes.properties import JmsType, Property
from tests.brokers.bench import first_line, numbered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.brokers.bench import Bench

__all__ = ["CASES"]

_TEXT = "grüße €\n"
_BASE64 = "AAECAwQ="
_BODIES: Mapping[str, tuple[Mapping[str, str], Message]] = {
    "text": ({"type": "text", "body": _TEXT}, Message(_TEXT.encode())),
    # Java has two units for it, and some brokers write each as a character of its own (CESU-8).
    "text with emoji": ({"type": "text", "body": "😀"}, Message("😀".encode())),
    "bytes": ({"type": "bytes", "body": _BASE64}, Message(bytes(range(5)), BodyType.BYTES)),
    "map": ({"type": "map", "entry a": "int:5"}, Message(b'{"a":5}', BodyType.MAP, body_types="a=int")),
    "stream": (
        {"type": "stream", "item 0": "long:7", "item 1": "string:x"},
        Message(b'[7,"x"]', BodyType.STREAM, body_types="long,string"),
    ),
    "object": ({"type": "object", "body": "string:o"}, Message(b"\xac\xed\x00\x05t\x00\x01o", BodyType.OBJECT)),
    "empty": ({"type": "empty"}, Message(b"")),
}
"""Bodies by kind, as the application sends or sees them and as the canonical message has them."""
_FIELDS = {"JMSCorrelationID": "c:1", "JMSType": "new", "JMSPriority": "7", "JMSReplyTo": "queue:replies"}
_PROPERTIES = {
    "boolean": Property("true", JmsType.BOOLEAN),
    "byte": Property("-5", JmsType.BYTE),
    "short": Property("300", JmsType.SHORT),
    "int": Property("70000", JmsType.INT),
    "long": Property(str(1 << 40), JmsType.LONG),
    "float": Property("0.5", JmsType.FLOAT),
    "double": Property("1e+300", JmsType.DOUBLE),
    "string": Property("grüße €", JmsType.STRING),
}
_HOUR_MS = 3_600_000
_CLOCK_MS = 10_000


def _bodies_to_the_bridge(bench: Bench) -> None:
    for kind, (form, expected) in _BODIES.items():
        queue = bench.queue()
        source = bench.source(f"queue:{queue}")
        bench.application.send(bench.theirs(queue), [form])
        try:
            source.connect()
            found = bench.receive(source, 1, 5)
        except NotConnectedError as error:
            bench.differs(f"{kind}: the connection breaks ({first_line(error)})")
            continue
        finally:
            source.close()
        if not found:
            bench.differs(f"{kind}: does not arrive")
        elif found[0].fault is not None:
            bench.differs(f"{kind}: not decoded, so it goes to the dead letters ({found[0].fault})")
        elif (seen := found[0].message).body_type is not expected.body_type:
            bench.differs(f"{kind}: arrives as {_shown(seen)}")
        # A serialised object may end with marks of the stream.
        elif seen.body != expected.body and not (kind == "object" and seen.body.startswith(expected.body)):
            bench.differs(f"{kind}: arrives changed, as {_shown(seen)}")
        # A message without a body may say so.
        elif seen.body_types != expected.body_types and not (
            kind == "empty" and seen.body_types in (NO_BODY, NULL_BODY)
        ):
            bench.differs(f"{kind}: types of its values are '{seen.body_types}', not '{expected.body_types}'")


def _bodies_from_the_bridge(bench: Bench) -> None:
    for kind, (form, message) in _BODIES.items():
        queue = bench.queue()
        (refusal,) = bench.send(bench.sink(), f"queue/{queue}", message)
        if refusal is not None:
            bench.differs(f"{kind}: fails softly ({refusal})")
            continue
        # An empty message and an empty text are one in the canonical message.
        expected = {"type": "text", "body": ""} if kind == "empty" else form
        try:
            found = bench.arrived(queue, 1)
        except AssertionError as error:
            bench.differs(f"{kind}: the application cannot read it ({first_line(error)})")
            bench.end_application()
            continue
        if not found:
            bench.differs(f"{kind}: does not arrive")
        elif wrong := {name: found[0].get(name) for name, text in expected.items() if found[0].get(name) != text}:
            bench.differs(f"{kind}: arrives as {found[0]['type']}{_differences(wrong, expected)}")


def _headers_to_the_bridge(bench: Bench) -> None:
    queue = bench.queue()
    reply_to = {"JMSReplyTo": bench.theirs("replies")}
    bench.application.send(
        bench.theirs(queue), [{"body": "x", **_FIELDS, **reply_to, "JMSDeliveryMode": "NON_PERSISTENT"}]
    )
    (message,) = _taken(bench, queue, 1)
    expected = {**_FIELDS, "JMSDeliveryMode": "NON_PERSISTENT", "JMSDestination": f"queue:{queue}"}
    _compare(bench, expected, message.headers)
    for name in ("JMSMessageID", "JMSTimestamp"):
        if name not in message.headers:
            bench.differs(f"{name}: lost")


def _headers_from_the_bridge(bench: Bench) -> None:
    queue = bench.queue()
    headers = {**_FIELDS, "JMSDeliveryMode": "NON_PERSISTENT"}
    seen = _delivered(bench, queue, Message(b"x", headers=headers))
    compared = {name: text for name, text in headers.items() if name != "JMSReplyTo"}
    _compare(bench, compared, seen)
    # Clients spell destinations in their own ways.
    if "replies" not in seen.get("JMSReplyTo", ""):
        bench.differs(f"JMSReplyTo: {_instead(seen.get('JMSReplyTo'), 'queue:replies')}")


def _types_to_the_bridge(bench: Bench) -> None:
    queue = bench.queue()
    properties = {f"property p_{name}": f"{name}:{each.text}" for name, each in _PROPERTIES.items()}
    bench.application.send(bench.theirs(queue), [{"body": "x", **properties}])
    (message,) = _taken(bench, queue, 1)
    found = {name: message.properties.get(f"p_{name}") for name in _PROPERTIES}
    _compare_types(bench, {name: (str(each.type or "untyped"), each.text) for name, each in found.items() if each})


def _types_from_the_bridge(bench: Bench) -> None:
    queue = bench.queue()
    seen = _delivered(bench, queue, Message(b"x", properties={f"p_{name}": each for name, each in _PROPERTIES.items()}))
    found = {name: seen[f"property p_{name}"] for name in _PROPERTIES if f"property p_{name}" in seen}
    parts = {name: text.partition(":") for name, text in found.items()}
    _compare_types(bench, {name: (kind, text) for name, (kind, _, text) in parts.items()})


def _groups(bench: Bench) -> None:
    queue = bench.queue()
    groups = {"JMSXGroupID": "g", "JMSXGroupSeq": "3"}
    bench.application.send(bench.theirs(queue), [{"body": "x", **groups}])
    (message,) = _taken(bench, queue, 1)
    _compare(bench, groups, message.headers, " to the bridge")
    other = bench.queue()
    seen = _delivered(bench, other, Message(b"x", headers=groups))
    sent = {"property JMSXGroupID": "string:g", "property JMSXGroupSeq": "int:3"}
    _compare(bench, sent, seen, " from the bridge")


def _expiry(bench: Bench) -> None:
    later = int(time.time() * 1000) + _HOUR_MS
    queue = bench.queue()
    bench.application.send(bench.theirs(queue), [{"body": "x", "JMSExpiration": str(later)}])
    (message,) = _taken(bench, queue, 1)
    _compare_time(bench, "to the bridge", later, message.headers.get("JMSExpiration"))
    other = bench.queue()
    seen = _delivered(bench, other, Message(b"x", headers={"JMSExpiration": str(later)}))
    _compare_time(bench, "from the bridge", later, seen.get("JMSExpiration"))


def _redelivery(bench: Bench) -> None:
    queue = bench.queue()
    bench.application.send(bench.theirs(queue), numbered(10))
    source = bench.source(f"queue:{queue}")
    source.connect()
    first = bench.receive(source, 10)
    source.acknowledge([each.token for each in first[:4]])
    source.close()
    source.connect()
    again = bench.receive(source, 6)
    bodies = [each.message.body.decode(errors="replace") for each in again]
    if sorted(bodies) != [str(number) for number in range(4, 10)]:
        bench.differs(f"4 of 10 were acknowledged; {len(bodies)} came again: {bodies}")
    elif bodies != sorted(bodies):
        bench.differs(f"those not acknowledged come again in another order: {bodies}")
    if unmarked := [each for each in again if each.message.headers.get("JMSRedelivered") != "true"]:
        bench.differs(f"{len(unmarked)} of {len(again)} that came again are not marked JMSRedelivered")
    source.acknowledge([each.token for each in again])
    source.close()
    if left := bench.broker.waiting(queue):
        bench.differs(f"{left} stay in the queue after all were acknowledged")


def _selectors(bench: Bench) -> None:
    queue = bench.queue()
    source = bench.source(f"queue:{queue}", selector="region = 'emea'")
    source.connect()
    regions = ("emea", "apac", "emea")
    bench.application.send(
        bench.theirs(queue), [{"body": str(n), "property region": f"string:{to}"} for n, to in enumerate(regions)]
    )
    found = bench.receive(source, 2)
    if (bodies := [each.message.body for each in found]) != [b"0", b"2"]:
        bench.differs(f"of 'emea', 'apac', 'emea' it gets {[body.decode() for body in bodies]}")
    source.acknowledge([each.token for each in found])
    source.close()
    if (left := bench.broker.waiting(queue)) != 1:
        bench.differs(f"{left} of the 1 not selected stay in the queue")


def _topics(bench: Bench) -> None:
    topic = bench.queue(made=False)
    source = bench.source(f"topic:{topic}")
    source.connect()
    bench.application.send(bench.theirs(topic, "topic"), numbered(2))
    if (found := len(bench.receive(source, 2))) != 2:
        bench.differs(f"to the bridge {found} of 2 arrive")
    source.close()
    other = bench.queue(made=False)
    sink = bench.sink()
    theirs = bench.broker.listening(bench.protocol, other)
    bench.application.open(theirs)
    for refusal in bench.send(sink, f"topic/{other}", Message(b"1"), Message(b"2")):
        if refusal is not None:
            bench.differs(f"from the bridge: {refusal}")
    got = [each for each in (bench.application.receive(theirs, 5) for _ in range(2)) if each]
    if len(got) != 2:
        bench.differs(f"from the bridge {len(got)} of 2 arrive")


def _durable_subscription(bench: Bench) -> None:
    topic = bench.queue(made=False)
    source = bench.source(f"topic:{topic}", subscription=f"sub{topic.rpartition('_')[2]}")
    source.connect()
    source.close()
    bench.application.send(bench.theirs(topic, "topic"), numbered(3))
    source.connect()
    found = bench.receive(source, 3)
    if len(found) != 3:
        bench.differs(f"{len(found)} of 3 that came while the bridge was stopped arrive")
    source.acknowledge([each.token for each in found])


def _request_and_reply(bench: Bench) -> None:
    queue = bench.queue()
    source, sink = bench.source(f"queue:{queue}"), bench.sink()
    source.connect()
    bench.application.request(bench.theirs(queue), "question")
    found = bench.receive(source, 1)
    if not found:
        bench.differs("the request does not arrive")
        return
    if (to := found[0].message.headers.get("JMSReplyTo")) is None:
        bench.differs("the request arrives without JMSReplyTo")
        return
    (refusal,) = bench.send(sink, to, Message(b"answer"))
    if refusal is not None:
        bench.differs(f"the reply to {to} fails: {refusal}")
    elif bench.application.reply().get("body") != "answer":
        bench.differs(f"the reply to {to} does not arrive")


def _wrong_password(bench: Bench) -> None:
    source = bench.source("queue:any", password="wrong-one")
    try:
        source.connect()
    except NotConnectedError as error:
        bench.remark(f"“{error}”")
        if error.back_off_seconds is None:
            bench.differs("not recognised as a refused login, so it is tried again as soon as any")
        if "wrong-one" in str(error):
            bench.differs("the text shows the password")
    else:
        bench.differs("connects")


def _missing_queue(bench: Bench) -> None:
    queue = bench.queue(made=False)
    source = bench.source(f"queue:{queue}")
    try:
        source.connect()
        source.receive(2)
    except NotConnectedError as error:
        bench.remark(f"a source says “{error}”")
        if queue not in str(error):
            bench.differs("the text of a source does not name the queue")
    else:
        bench.remark("a source makes it")
    other = bench.queue(made=False)
    (refusal,) = bench.send(bench.sink(), f"queue/{other}", Message(b"x"))
    bench.remark("a sink makes it" if refusal is None else f"a message to it fails softly: “{refusal}”")


CASES: Mapping[str, Callable[[Bench], None]] = {
    "bodies to the bridge": _bodies_to_the_bridge,
    "bodies from the bridge": _bodies_from_the_bridge,
    "headers to the bridge": _headers_to_the_bridge,
    "headers from the bridge": _headers_from_the_bridge,
    "property types to the bridge": _types_to_the_bridge,
    "property types from the bridge": _types_from_the_bridge,
    "groups": _groups,
    "expiry": _expiry,
    "redelivery": _redelivery,
    "selectors": _selectors,
    "topics": _topics,
    "durable subscription across a stop": _durable_subscription,
    "request and reply": _request_and_reply,
    "wrong password": _wrong_password,
    "missing queue": _missing_queue,
}
"""Cases by the name of their row."""


def _taken(bench: Bench, queue: str, count: int) -> list[Message]:
    """Messages that a source takes from a queue and acknowledges; AssertionError if they do not come."""
    source = bench.source(f"queue:{queue}")
    source.connect()
    found = bench.receive(source, count)
    assert len(found) == count, f"{len(found)} of {count} arrive"
    assert [each.fault for each in found] == [None] * count, found[0].fault
    source.acknowledge([each.token for each in found])
    source.close()
    return [each.message for each in found]


def _delivered(bench: Bench, queue: str, message: Message) -> Mapping[str, str]:
    """A message that a sink sends, as the application sees it; AssertionError if it does not come."""
    (refusal,) = bench.send(bench.sink(), f"queue/{queue}", message)
    assert refusal is None, f"fails softly: {refusal}"
    found = bench.arrived(queue, 1)
    assert found, "does not arrive"
    return found[0]


def _compare(bench: Bench, expected: Mapping[str, str], seen: Mapping[str, str], way: str = "") -> None:
    for name, text in expected.items():
        if seen.get(name) != text:
            bench.differs(f"{name.removeprefix('property ')}{way}: {_instead(seen.get(name), text)}")


def _compare_types(bench: Bench, found: Mapping[str, tuple[str, str]]) -> None:
    """Notes which types are lost or other ones, those with the same fate together; `found` are types and texts."""
    fates: dict[str, list[str]] = {}
    for name, expected in _PROPERTIES.items():
        if name not in found:
            fates.setdefault("lost", []).append(name)
            continue
        kind, text = found[name]
        if kind != name:
            fates.setdefault(f"arrive as {kind}", []).append(name)
        if _number(text) != _number(expected.text):
            fates.setdefault(_instead(text, expected.text), []).append(name)
    for fate, names in fates.items():
        bench.differs(f"{', '.join(names)}: {fate}")


def _compare_time(bench: Bench, way: str, expected: int, seen: str | None) -> None:
    if seen in (None, "0"):
        bench.differs(f"{way}: lost")
    elif abs(int(seen) - expected) > _CLOCK_MS:
        bench.differs(f"{way}: {(int(seen) - expected) / 1000:+.0f} s off")


def _instead(seen: str | None, expected: str) -> str:
    return "lost" if seen is None else f"'{seen}', not '{expected}'"


def _differences(wrong: Mapping[str, str | None], expected: Mapping[str, str]) -> str:
    rest = {name: text for name, text in wrong.items() if name != "type"}
    return "".join(f", {name} {_instead(text, expected[name])}" for name, text in rest.items())


def _shown(message: Message) -> str:
    shown = ascii(message.body[:40].decode("latin-1")) if message.body else "an empty one"
    return f"{message.body_type.value.lower()}: {shown}" if message.body else f"empty {message.body_type.value.lower()}"


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
