"""Seals of published records: the digest, the header, and what recovery takes from topics that others write to, too."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from engine.message import ORIGIN, POSITION
from engine.record import SEAL
from engine.router.kafka_io import KafkaIO, Seal
from engine.router.published import Proof, find
from engine.seals import SealKeys
from routes.config import loads
from tests.spark.test_row_counters import OUTPUT, journal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from engine.router.published import Published

CONFIGURATION = """\
bridge.id=me
kafka.bootstrap.servers=127.0.0.1:1
source.s.type=nats
source.s.url=nats://127.0.0.1:1
source.s.destinations=in
routes.r.in.include=TRUE
routes.r.out.topic=out
"""
RUN, END, SINCE = "0123456789abcdef", {0: 100, 1: 50}, {0: 10, 1: 0}
OWN, OTHER = (SealKeys(secret, "me").of_records("j", "id") for secret in (b"ours", b"theirs"))
Headers = list[tuple[str, bytes | None]]

VECTORS = {0: "310e0edd47db6f72", 1: "fd67dc93c539f874", 8: "6224939a79f5f593", 15: "e545be4961ca29a1"}
"""Digests of the texts 00, 01, 02 … of a length by the key 00 … 0f: `vectors_sip64` of the reference implementation."""


def test_the_digest_is_siphash_2_4(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    hashing, guava = jvm.jmsbridge.kafka.SipHash(bytes(range(16))), jvm.com.google.common.hash.Hashing.sipHash24()
    for length, digest in VECTORS.items():
        found = hashing.of(bytes(range(length)), length)
        assert (found % 2**64).to_bytes(8, "little").hex() == digest
    for length in range(70):
        text = random.Random(length).randbytes(length)  # noqa: S311 # data of a test
        assert hashing.of(text, length) == guava.hashBytes(text).asLong()


def seal(spark: SparkSession, position: str, topic: str, key: bytes = OWN, run: str = RUN) -> bytes:
    jvm: Any = spark._jvm
    return bytes(jvm.jmsbridge.kafka.Seal(key, run).value(position.encode(), topic.encode()))


def sealed(spark: SparkSession, position: str, topic: str = "t", key: bytes = OWN) -> Headers:
    """The headers of a record, whose seal is for another position where the router would write none such."""
    own = position if re.fullmatch(r"[^:]*:[^:]*:(0|[1-9][0-9]{0,18})", position) else "j:0:20"
    return [(ORIGIN, b"me"), (POSITION, position.encode()), (SEAL, seal(spark, own, topic, key))]


def found_in(spark: SparkSession, records: list[Headers], topic: str = "t") -> Published:
    rows: list[Any] = [(topic, at % 3, at, headers) for at, headers in enumerate(records)]
    kafka_io = KafkaIO(spark, loads(CONFIGURATION))

    def is_own(*columns: Any) -> Any:
        return kafka_io.is_sealed(OWN, *columns)

    return find(spark.createDataFrame(rows, OUTPUT), Proof("j", "me", SINCE, END, is_own, "dead"))


def positions(spark: SparkSession, found: Published) -> set[tuple[int, int]]:
    """The positions that count as published, of all that the journal has."""
    missing: dict[int, set[int]] = {}
    for partition, end in END.items():
        frame: DataFrame = found.missing_in(journal(spark, partition, end))
        missing[partition] = {row.offset for row in frame.collect()}
    return {(partition, at) for partition, end in END.items() for at in range(end) if at not in missing[partition]}


def test_own_records_are_found_wherever_their_headers_stand(spark: SparkSession) -> None:
    foreign_in_front: Headers = [(ORIGIN, b"me"), (POSITION, b"j:0:60"), (SEAL, b"x" * 19)]
    behind: Headers = [("jmsbridge.destination", b"queue/a"), ("jmsbridge.route", b"r")]
    found = found_in(
        spark,
        [
            sealed(spark, "j:0:10"),
            [*foreign_in_front, *sealed(spark, "j:0:99")],
            [*sealed(spark, "j:1:0"), *behind],
            sealed(spark, "j:0:9"),
        ],
    )
    assert positions(spark, found) == {(0, 10), (0, 99), (1, 0)}
    assert found.highest == {0: 99, 1: 0}
    assert found.foreign == ()


HOSTILE: dict[str, Any] = {
    "a position behind the end": lambda s: sealed(s, "j:0:140", key=OTHER),
    "behind the end, with a seal of ours": lambda s: sealed(s, "j:0:100"),
    "the largest number": lambda s: sealed(s, f"j:0:{2**63 - 1}"),
    "a larger one": lambda s: sealed(s, f"j:0:{2**63}"),
    "a partition that is not there": lambda s: sealed(s, "j:7:3"),
    "no seal": lambda s: sealed(s, "j:0:20")[:2],
    "a seal without a value": lambda s: [*sealed(s, "j:0:20")[:2], (SEAL, None)],
    "a seal of another key": lambda s: sealed(s, "j:0:20", key=OTHER),
    "a copy from another topic": lambda s: sealed(s, "j:0:20", topic="other"),
    "a seal for another position": lambda s: [*sealed(s, "j:0:20")[:2], *sealed(s, "j:0:21")[2:]],
    "another run in the seal": lambda s: [*sealed(s, "j:0:20")[:2], (SEAL, b"x" * 8 + seal(s, "j:0:20", "t")[8:])],
    "a longer seal": lambda s: [*sealed(s, "j:0:20")[:2], (SEAL, seal(s, "j:0:20", "t") + b"A")],
    "an empty seal": lambda s: [*sealed(s, "j:0:20")[:2], (SEAL, b"")],
    "no numbers": lambda s: sealed(s, "j:x:y"),
    "a part more": lambda s: sealed(s, "j:0:20:1"),
    "a part less": lambda s: sealed(s, "j:0"),
    "a number with zeros in front": lambda s: sealed(s, "j:0:020"),
    "another partition": lambda s: [(ORIGIN, b"me"), (POSITION, b"j:1:20"), *sealed(s, "j:0:20")[2:]],
    "negative": lambda s: sealed(s, "j:0:-1", key=OTHER),
    "bytes that are not a text": lambda s: [(ORIGIN, b"me"), (POSITION, b"j:0:\xff"), (SEAL, b"\xff" * 19)],
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_record_of_others_is_counted_and_named_and_changes_nothing(spark: SparkSession, kind: str) -> None:
    own = [sealed(spark, f"j:0:{at}") for at in (10, 11, 30)]
    found = found_in(spark, [*own, HOSTILE[kind](spark)])
    assert positions(spark, found) == {(0, 10), (0, 11), (0, 30)}
    assert found.highest == {0: 30}
    assert [tuple(each) for each in found.foreign] == [("t", 1, 0, 3)]


def test_dead_letters_of_sinks_are_neither_believed_nor_counted(spark: SparkSession) -> None:
    stage: Headers = [("__connect.errors.stage", b"sink mq"), ("jmsbridge.reason", b"refused")]
    found = found_in(spark, [[*sealed(spark, "j:0:20", topic="jms-bridge.sink.mq"), *stage]], topic="dead")
    assert (found.rows, found.foreign) == ((), ())


def test_records_of_other_bridges_and_journals_are_not_counted(spark: SparkSession) -> None:
    others: list[Headers] = [
        [(ORIGIN, b"b2"), (POSITION, b"j:0:20"), (SEAL, b"x" * 19)],
        [(ORIGIN, b"me"), (POSITION, b"jj:0:20"), (SEAL, b"x" * 19)],
        [(ORIGIN, b"me")],
        [(ORIGIN, None), (POSITION, None)],
        [],
    ]
    found = found_in(spark, others)
    assert (found.rows, found.foreign) == ((), ())


def test_no_hostile_records_ever_change_what_is_found(spark: SparkSession) -> None:
    chance = random.Random(32)  # noqa: S311 # data of a test
    for _ in range(5):
        own = [
            sealed(spark, f"j:{each}:{at}") for each, end in END.items() for at in range(end) if chance.random() < 0.3
        ]
        wanted = positions(spark, found_in(spark, own))
        hostile = [noise(spark, chance) for _ in range(60)]
        mixed = [*own, *hostile]
        chance.shuffle(mixed)
        found = found_in(spark, mixed)
        assert positions(spark, found) == wanted
        assert sum(each.records for each in found.foreign) <= len(hostile)


def noise(spark: SparkSession, chance: random.Random) -> Headers:
    """Headers of a record that this run did not write to the topic, with some of them changed."""
    offset = chance.choice((chance.randrange(200), -1, 2**31, 2**63 - 1, 2**64, chance.randrange(10, 100)))
    position = chance.choice(
        (f"j:{chance.randrange(3)}:{offset}", f"j:{offset}", "j:", f"j:0:{offset}:", f"j::{offset}")
    )
    made = sealed(spark, position, topic=chance.choice(("other", "tt", "")), key=chance.choice((OWN, OTHER)))
    at = chance.randrange(len(made))
    name, value = made[at]
    made[at] = name, chance.choice((value, None, b"", (value or b"")[:-1], chance.randbytes(19)))
    if chance.random() < 0.3:
        chance.shuffle(made)
    return made[: chance.choice((2, 3, 3, 3))]


def test_slices_add_up_the_records_of_others(spark: SparkSession) -> None:
    first = found_in(spark, [HOSTILE["no seal"](spark)] * 3)
    second = found_in(spark, [sealed(spark, "j:0:10"), *[HOSTILE["no seal"](spark)] * 2])
    assert [tuple(each) for each in (first | second).foreign] == [("t", 5, 0, 0)]


def test_neither_a_plan_nor_the_text_of_an_object_shows_the_key(spark: SparkSession) -> None:
    kafka_io = KafkaIO(spark, loads(CONFIGURATION))
    text = F.lit(b"x")
    frame: Any = spark.range(1).select(kafka_io.is_sealed(OWN, text, text, F.lit("t")))
    jvm: Any = spark._jvm
    shown = [frame._jdf.queryExecution().toString(), jvm.jmsbridge.kafka.Seal(OWN, RUN).toString()]
    shown += [repr(SealKeys(b"ours", "me")), repr(Seal(OWN, RUN))]
    for spelt in (OWN.hex(), OWN.hex(" "), repr(OWN)[2:-1], ", ".join(str(byte) for byte in OWN), "ours"):
        assert not [each for each in shown if spelt.lower() in each.lower()]
