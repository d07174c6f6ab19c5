"""A topology with Avro, Protobuf and JSON Schema, on a real Kafka and a registry that others have written to."""

from __future__ import annotations

import json
import struct
import time
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Message
from confluent_kafka.schema_registry import Schema
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.integration.topologies import definitions
from tests.integration.topologies.conftest import TopologyBench
from tests.integration.topologies.registry import ApicurioRegistry
from tests.topic_records import committed_records, ordered_producer
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from engine.embedded import EmbeddedKafka

PAGE = {"name": "page", "type": "string"}
OLD = {"type": "record", "name": "Click", "fields": [PAGE, {"name": "n", "type": "int"}]}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}
NEW = {"type": "record", "name": "Click", "fields": [PAGE, {"name": "n", "type": "long"}, NOTE]}
VISITOR = json.loads(definitions.VISITOR)
PAGE_BEFORE = {"name": "from_page", "type": "string", "default": ""}
NEW_VISITOR = {**VISITOR, "fields": [*VISITOR["fields"], PAGE_BEFORE]}
ORDER = {
    "type": "object",
    "properties": {"customer": {"type": "string"}, "amount": {"type": "number", "minimum": 0}},
    "required": ["customer", "amount"],
}
NEWER = {**NEW, "fields": [*NEW["fields"], {"name": "more", "type": "string", "default": ""}]}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApicurioRegistry]:
    made = ApicurioRegistry(tmp_path_factory.mktemp("registry"))
    yield made
    made.close()


def page_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="pages.proto", package="web", syntax="proto3")
    message = file.message_type.add(name="Page")
    message.field.add(name="title", number=1, label=1, type=9)
    message.field.add(name="views", number=2, label=1, type=5)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClassesForFiles([file.name], pool)["web.Page"]


class Client:
    """Sends and receives values as Confluent's own library does."""

    def __init__(self, bench: TopologyBench, kafka: EmbeddedKafka, registry: ApicurioRegistry) -> None:
        self._bench, self._bootstrap, self._client = bench, kafka.bootstrap, registry.client
        self._producer = ordered_producer(kafka.bootstrap)

    def send(self, topic: str, value: bytes | None) -> None:
        self._producer.produce(f"{self._bench.prefix}-{topic}", value, b"k")
        assert self._producer.flush(30) == 0

    def send_avro(self, schema: dict[str, Any], **fields: Any) -> None:
        write = AvroSerializer(self._client, json.dumps(schema))
        self.send("clicks", write(fields, self._about("clicks")))

    def send_page(self, page: Any) -> None:
        write = ProtobufSerializer(type(page), self._client, {"use.deprecated.format": False})
        self.send("pages", write(page, self._about("pages")))

    def send_order(self, **fields: Any) -> None:
        write = JSONSerializer(json.dumps(ORDER), self._client)
        self.send("orders", write(fields, self._about("orders")))

    def orders(self) -> list[Any]:
        read = JSONDeserializer(None, schema_registry_client=self._client)
        return [read(each.value(), self._about("orders-out")) for each in self.received("orders-out")]

    def send_visit(self, schema: dict[str, Any], **key: Any) -> None:
        topic = f"{self._bench.prefix}-visits"
        write = AvroSerializer(self._client, json.dumps(schema))
        self._producer.produce(topic, b"x", write(key, SerializationContext(topic, MessageField.KEY)))
        assert self._producer.flush(30) == 0

    def received(self, topic: str) -> list[Message]:
        return list(committed_records(self._bootstrap, f"{self._bench.prefix}-{topic}"))

    def clicks(self) -> list[Any]:
        read = AvroDeserializer(self._client)
        return [read(each.value(), self._about("counts-out")) for each in self.received("counts-out")]

    def visits(self) -> list[tuple[Any, Any]]:
        read = AvroDeserializer(self._client)
        about = SerializationContext(f"{self._bench.prefix}-visits-out", MessageField.KEY)
        found = [(read(each.key(), about), json.loads(each.value())) for each in self.received("visits-out")]
        return sorted(found, key=lambda each: (each[0]["n"], each[1]["count"]))

    def pages(self, page: Any) -> list[Any]:
        read = ProtobufDeserializer(page, {"use.deprecated.format": False})
        return [read(each.value(), self._about("joined-out")) for each in self.received("joined-out")]

    def letters(self) -> list[str]:
        letters = self.received("schemas-dead-letters")
        return [dict(each.headers() or [])["jmsbridge.error"].decode() for each in letters]

    def _about(self, topic: str) -> SerializationContext:
        return SerializationContext(f"{self._bench.prefix}-{topic}", MessageField.VALUE)


def test_values_of_other_programs_are_read_by_their_own_schemas_and_an_outage_of_the_registry_loses_none(
    bench: TopologyBench, kafka: EmbeddedKafka, registry: ApicurioRegistry, tmp_path: Path
) -> None:
    code, told = bench.fails("schemas")
    assert code == 2
    assert "needs a schema registry: set schema.registry.url" in told
    code, told = bench.fails("schemas", "--schema-registry", "http://127.0.0.1:1")
    assert code == 6
    assert "the schema registry has been away for" in told

    lines = f"schema.registry.url={registry.url}\nschema.registry.timeout=1s\n"
    bench.file.write_text(bench.file.read_text() + lines)
    code, told = bench.fails("schemas")
    assert code == 2
    assert f"refuses /subjects/{bench.prefix}-clicks-value/versions/latest: 404" in told

    client, page = Client(bench, kafka, registry), page_class()
    client.send_avro(OLD, page="a", n=1)
    client.send_avro(NEW, page="b", n=2, note="x")
    client.send_page(page(title="T", views=5))
    client.send_order(customer="ann", amount=1.25)
    # The registry gives it as text, and the one of the page's writer as a descriptor.
    text = 'syntax = "proto3"; package web; message Page { string title = 1; int32 views = 2; string more = 3; }'
    registry.client.register_schema(f"{bench.prefix}-pages-value", Schema(text, "PROTOBUF"))
    for number in range(4):
        client.send_visit(VISITOR, name="ann", n=number)
        client.send_visit(NEW_VISITOR, name="ann", n=number, from_page="a")
    running = bench.start("schemas")
    wanted = [{"page": "a", "total": 2, "note": None}, {"page": "b", "total": 3, "note": "x"}]
    until(lambda: len(client.clicks()) == 2, 120, "two clicks")
    assert client.clicks() == wanted
    until(lambda: client.pages(page) == [page(title="T", views=5)], 60, "a page")
    until(lambda: client.orders() == [{"customer": "ann", "total": 2.5}], 60, "an order")

    visits = [({"name": "ann", "n": number}, {"count": count}) for number in range(4) for count in (1, 2)]
    until(lambda: client.visits() == visits, 60, "visits of keys that two schemas have written")

    client.send("clicks", struct.pack(">bi", 0, 99_999) + b"x")
    until(lambda: client.letters() == ["the schema registry knows no schema with the id 99999"], 60, "a dead letter")

    number = registry.client.register_schema(f"{bench.prefix}-clicks-value", Schema(json.dumps(NEWER), "AVRO"))
    registry.suspend()
    client.send("clicks", struct.pack(">bi", 0, number) + b"\x02c\x06\x00\x00")
    time.sleep(8)
    assert running.poll() is None, bench.log.read_text()[-3_000:]
    assert len(client.received("counts-out")) == 2
    registry.resume()
    until(lambda: len(client.clicks()) == 3, 60, "the click that waited")
    assert client.clicks()[-1] == {"page": "c", "total": 4, "note": None}
    assert len(client.letters()) == 1
    bench.stop(running)
