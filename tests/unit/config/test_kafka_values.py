"""Values of `kafka.*` and `spark.*` that a client or the JVM refuses are told with their place and the user's key."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from engine.kafka.section import CHOICES, COMMON, CONSUMER, NOT_LESS, PRODUCER, WHOLE
from engine.kafka.settings import librdkafka
from routes.config import lint_text, loads
from tests.commands import exit_code
from tests.unit.config.start import START

SILENT = logging.getLogger(f"{__name__}.librdkafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


def refused(name: str, value: str) -> str:
    """What librdkafka itself says of a setting by Java's name; empty if it takes it. No server is asked."""
    role, kind = ("consumer", Consumer) if name in CONSUMER else ("producer", Producer)
    settings: dict[str, object] = dict(librdkafka(loads(START).kafka_access, role))  # type: ignore[arg-type]
    del settings["bootstrap.servers"]
    own = {**COMMON, **PRODUCER, **CONSUMER}[name]
    try:
        client = kind({**settings, "group.id": "g", own: value}, logger=SILENT)
    except KafkaException as error:
        return str(error.args[0].str())
    if isinstance(client, Consumer):
        client.close()
    return ""


def messages(*lines: str) -> list[str]:
    return [str(fault).splitlines()[0] for fault in lint_text(START + "\n".join(lines)).faults]


@pytest.mark.parametrize("name", sorted({*WHOLE, *CHOICES}))
def test_lint_takes_what_librdkafka_takes_and_nothing_beyond(name: str) -> None:
    in_pairs = {each for larger, _, others in NOT_LESS for each in (larger, *others)}
    low, high = WHOLE.get(name, (0, 0))
    taken = CHOICES.get(name) or (str(low), str(high))
    for value in taken:
        if name not in in_pairs:
            assert messages(f"kafka.{name}={value}") == []
        if {**COMMON, **PRODUCER, **CONSUMER}[name] and value != "-1":  # `engine.kafka` translates that one.
            found = refused(name, value)
            assert found == "" or (name in in_pairs and "must be >=" in found)
    for value in ("abc", "", *(() if name in CHOICES else (str(low - 1), str(high + 1)))):
        (found,) = messages(f"kafka.{name}={value}")
        assert found.startswith(f"6:{len(name) + 8}: error: '{value}' is not ")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (("kafka.request.timeout.ms=abc",), "6:26: error: 'abc' is not a whole number from 10 to 300000"),
        (
            ("kafka.producer.compression.type=zipp",),
            "6:33: error: 'zipp' is not none, gzip, snappy, lz4 or zstd (did you mean gzip?)",
        ),
        (("kafka.consumer.check.crcs=yes",), "6:27: error: 'yes' is not true or false"),
        (
            ("kafka.session.timeout.ms=400000",),
            "6:26: error: max.poll.interval.ms (300000) is less than session.timeout.ms (400000) "
            "(raise kafka.max.poll.interval.ms)",
        ),
        (
            ("kafka.linger.ms=5", "kafka.producer.delivery.timeout.ms=30000"),
            "7:36: error: delivery.timeout.ms (30000) is less than linger.ms and request.timeout.ms (30005) "
            "(raise kafka.delivery.timeout.ms)",
        ),
        (("spark.driver.memory=lots",), "6:21: error: 'lots' is not the size of a heap (as in 512m, 2g)"),
        (("spark.driver.memory=2gb",), "6:21: error: '2gb' is not the size of a heap (as in 512m, 2g)"),
        (("spark.driver.memory=100m",), "6:21: error: Spark does not start with a heap of '100m' (450m is the least)"),
        (
            ("spark.master=",),
            "6:14: error: spark.master is '', which is not a master of Spark (leave it out, or write local[6], or name "
            "a cluster: spark://HOST:7077, k8s://https://HOST:443, yarn)",
        ),
        (
            ("spark.master=mesos",),
            "6:14: error: spark.master is 'mesos', which is not a master of Spark (leave it out, or write local[6], or "
            "name a cluster: spark://HOST:7077, k8s://https://HOST:443, yarn)",
        ),
        (
            ("spark.master=local[2]",),
            "6:14: error: 'local[2]' has 2 task slots, too few for the 4 partitions of the journal "
            "(leave it out, or write local[6])",
        ),
    ],
)
def test_a_value_that_cannot_be_used_is_told_with_its_place(lines: tuple[str, ...], told: str) -> None:
    assert messages(*lines) == [told]


@pytest.mark.parametrize(
    "lines",
    [
        ("kafka.session.timeout.ms=400000", "kafka.max.poll.interval.ms=400000"),
        ("kafka.session.timeout.ms=400000", "kafka.consumer.max.poll.interval.ms=400000"),
        ("kafka.linger.ms=280000",),
        ("kafka.send.buffer.bytes=-1", "kafka.receive.buffer.bytes=1000"),
        ("spark.driver.memory=512m",),
        ("spark.driver.memory=2G", "spark.master=local[6]"),
        ("spark.master=local[*]",),
        ("spark.master=spark://127.0.0.1:7077",),
        ("spark.master=yarn", "spark.executor.instances=4"),
        ("spark.master=local[3]", "journal.partitions=1"),
    ],
)
def test_a_value_that_can_be_used_is_not_complained_about(lines: tuple[str, ...]) -> None:
    assert messages(*lines) == []


def test_a_pair_that_does_not_fit_is_told_once_for_all_clients() -> None:
    assert len(messages("kafka.reconnect.backoff.ms=20000")) == 1
    assert len(messages("kafka.producer.reconnect.backoff.ms=20000")) == 1


def test_no_secret_is_quoted() -> None:
    text = f"{START}kafka.request.timeout.ms=${{env:PW}}\nspark.driver.memory=${{env:PW}}\nspark.master=${{env:PW}}\n"
    faults = lint_text(text, env={"PW": "hunter2"}).faults
    assert len(faults) == 3
    assert "hunter2" not in "".join(map(str, faults))


@pytest.mark.parametrize("command", [("validate",), ("dlt", "list"), ("send", "kafka:x", "y"), ("run",)])
def test_all_commands_tell_it_alike(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "b.properties"
    file.write_text(f"{START}kafka.request.timeout.ms=abc\nkafka.bootstrap.servers=127.0.0.1:1\n")
    assert exit_code(*command, "-c", file) == 2
    told = capsys.readouterr()
    assert "'abc' is not a whole number from 10 to 300000" in told.out + told.err
    assert f"{file}:6" in (told.out + told.err).replace("\n", "")
