"""One set of Kafka settings, as librdkafka and as Spark's Java clients get it."""

from __future__ import annotations

import ast
from itertools import chain
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from engine.kafka.clients import QUIET
from engine.kafka.section import COMMON, CONSUMER, PRODUCER
from engine.kafka.security import read_jaas, write_jaas
from engine.kafka.settings import Role, java_settings, librdkafka
from routes.config import loads
from routes.kafka_access import KafkaAccess
from routes.keys.values import BadValueError

ROOT = Path(__file__).parents[2]
JAAS = 'org.apache.kafka.common.security.{} required username="al\\"ice" password="it\'s; \\\\ secret=1";'


def access(*lines: str, base: Path = Path()) -> KafkaAccess:
    least = "bridge.id=b1\nroutes.r.in.include=TRUE\nroutes.r.out.topic=t\nkafka.bootstrap.servers=k:1\n"
    return loads(least + "\n".join(lines), base).kafka_access


def rdkafka(*lines: str, role: Role = "producer", base: Path = Path()) -> dict[str, str]:
    """What the lines add to the settings of librdkafka."""
    plain = librdkafka(access(), role)
    return {key: value for key, value in librdkafka(access(*lines, base=base), role).items() if plain.get(key) != value}


def java(*lines: str, role: Role = "producer", base: Path = Path()) -> dict[str, str]:
    """What the lines add to the settings of a client in Java."""
    plain = java_settings(access(), role)
    given = java_settings(access(*lines, base=base), role)
    return {key: value for key, value in given.items() if plain.get(key) != value}


def test_what_a_producer_needs_is_there() -> None:
    assert librdkafka(access(), "producer") == {
        "acks": "all",
        "bootstrap.servers": "k:1",
        "client.id": "b1",
        "enable.idempotence": "true",
        "max.in.flight.requests.per.connection": "1",
        "message.max.bytes": str(9 * 1024 * 1024),
        "partitioner": "murmur2_random",
    }
    assert java_settings(access(), "producer") == {
        "acks": "all",
        "bootstrap.servers": "k:1",
        "client.id": "b1",
        "enable.idempotence": "true",
        "max.request.size": str(9 << 20),
        "buffer.memory": str(32 << 20),
    }


def test_a_consumer_reads_what_is_committed_and_commits_nothing_itself() -> None:
    settings = librdkafka(access(), "consumer")
    assert (settings["isolation.level"], settings["enable.auto.commit"]) == ("read_committed", "false")
    assert java_settings(access(), "consumer")["isolation.level"] == "read_committed"


def test_an_admin_client_gets_nothing_but_where_and_who() -> None:
    lines = ("kafka.linger.ms=1", "kafka.fetch.min.bytes=1", "kafka.producer.batch.size=1", "kafka.client.rack=r")
    assert rdkafka(*lines, role="admin") == {"client.rack": "r"}


@pytest.mark.parametrize("name", sorted(filter(None, {*COMMON.values(), *PRODUCER.values(), *CONSUMER.values()})))
def test_librdkafka_knows_every_name_of_the_table(name: str) -> None:
    with pytest.raises(KafkaException) as raised:
        Producer({name: "\x01", "log_level": "0", "no.such.name": ""})
    # It stops at the first fault; a name it knew would let it come to the value or to the next name.
    assert f'No such configuration property: "{name}"' not in raised.value.args[0].str()


def test_names_that_differ_are_translated_and_others_left_out() -> None:
    lines = (
        "kafka.request.timeout.ms=9000",
        "kafka.metadata.max.age.ms=60000",
        "kafka.send.buffer.bytes=-1",
        "kafka.receive.buffer.bytes=1000",
        "kafka.ssl.cipher.suites=TLS_AES_128_GCM_SHA256",
        "kafka.producer.buffer.memory=1048576",
        "kafka.producer.max.block.ms=5",
        "kafka.consumer.fetch.max.wait.ms=50",
    )
    assert rdkafka(*lines) == {
        "queue.buffering.max.kbytes": "1024",
        "socket.receive.buffer.bytes": "1000",
        "socket.send.buffer.bytes": "0",
        "socket.timeout.ms": "9000",
        "topic.metadata.refresh.interval.ms": "60000",
    }
    assert rdkafka("kafka.consumer.fetch.max.wait.ms=50", role="consumer") == {"fetch.wait.max.ms": "50"}
    assert java(*lines)["max.block.ms"] == "5"


def test_a_setting_of_one_role_goes_to_that_role_wherever_it_is_written() -> None:
    lines = ("kafka.linger.ms=1", "kafka.max.poll.records=2", "kafka.consumer.max.poll.records=3")
    assert java(*lines) == {"linger.ms": "1"}
    assert java(*lines, role="consumer") == {"max.poll.records": "3"}


def test_a_setting_only_a_plug_in_knows_goes_to_java_alone() -> None:
    assert java("kafka.my.plugin=1") == {"my.plugin": "1"}
    assert rdkafka("kafka.my.plugin=1") == {}


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [("PLAIN", "plain.PlainLoginModule"), ("SCRAM-SHA-512", "scram.ScramLoginModule")],
)
def test_a_login_may_be_written_either_way(mechanism: str, module: str) -> None:
    both = {"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism}
    start = [f"kafka.{name}={value}" for name, value in both.items()]
    jaas = JAAS.format(module)
    login = {"sasl.username": 'al"ice', "sasl.password": "it's; \\ secret=1"}
    in_java = [*start, f"kafka.sasl.jaas.config={jaas}".replace("\\", "\\\\")]
    in_librdkafka = [*start, 'kafka.sasl.username=al"ice', r"kafka.sasl.password=it's; \\ secret=1"]
    for lines in (in_java, in_librdkafka):
        assert rdkafka(*lines) == both | login
        assert java(*lines) == both | {"sasl.jaas.config": jaas}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "a.PlainLoginModule required",
        'a.PlainLoginModule required username="u";',
        "a.Krb5LoginModule required u=1;",
    ],
)
def test_a_login_that_names_nobody_is_refused(text: str) -> None:
    with pytest.raises(BadValueError):
        read_jaas(text)


def test_a_login_survives_being_written_and_read() -> None:
    for password in ('"', "\\", "a b;", "ü", "\\\\\"';"):
        for mechanism, (name, secret) in {
            "PLAIN": ("sasl.username", "sasl.password"),
            "OAUTHBEARER": ("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret"),
        }.items():
            login = {name: "u", secret: password}
            assert read_jaas(write_jaas(mechanism, login)) == login


def test_certificates_to_trust_may_be_written_either_way(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.touch()
    for lines in (
        ["kafka.ssl.ca.location=ca.pem"],
        ["kafka.ssl.truststore.location=ca.pem"],
        ["kafka.ssl.truststore.location=ca.pem", "kafka.ssl.truststore.type=PEM"],
    ):
        assert rdkafka(*lines, base=tmp_path) == {"ssl.ca.location": str(ca)}
        assert java(*lines, base=tmp_path) == {"ssl.truststore.location": str(ca), "ssl.truststore.type": "PEM"}


def test_a_client_certificate_comes_from_one_file_or_two(tmp_path: Path) -> None:
    for name in ("me.p12", "me.pem", "me.key"):
        (tmp_path / name).write_text(name)
    me, key, store = (str(tmp_path / name) for name in ("me.pem", "me.key", "me.p12"))

    pkcs12 = ["kafka.ssl.keystore.location=me.p12", "kafka.ssl.keystore.password=pw"]
    assert rdkafka(*pkcs12, base=tmp_path) == {"ssl.keystore.location": store, "ssl.keystore.password": "pw"}
    assert java(*pkcs12, base=tmp_path)["ssl.keystore.type"] == "PKCS12"

    pem = ["kafka.ssl.keystore.location=me.pem", "kafka.ssl.key.password=pw"]
    assert rdkafka(*pem, base=tmp_path) == {
        "ssl.certificate.location": me,
        "ssl.key.location": me,
        "ssl.key.password": "pw",
    }

    two = ["kafka.ssl.certificate.location=me.pem", "kafka.ssl.key.location=me.key"]
    assert rdkafka(*two, base=tmp_path) == {"ssl.certificate.location": me, "ssl.key.location": key}
    assert java(*two, base=tmp_path) == {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "me.pem",
        "ssl.keystore.key": "me.key",
    }


@pytest.mark.parametrize("written", ["", "none"])
def test_host_names_are_checked_unless_either_spelling_says_no(written: str) -> None:
    line = f"kafka.ssl.endpoint.identification.algorithm={written}"
    assert rdkafka(line) == {"ssl.endpoint.identification.algorithm": "none"}
    assert java(line) == {"ssl.endpoint.identification.algorithm": ""}


def test_no_repr_of_the_settings_shows_a_password(tmp_path: Path) -> None:
    (tmp_path / "k.pem").write_text("hunter2")
    lines = [
        "kafka.sasl.username=u",
        "kafka.sasl.password=hunter2",
        "kafka.ssl.certificate.location=k.pem",
        "kafka.ssl.key.location=k.pem",
    ]
    given = access(*lines, base=tmp_path)
    shown = {k: v for k, v in java_settings(given, "producer").items() if k != "ssl.keystore.certificate.chain"}
    assert "hunter2" not in "".join(chain(repr(shown), repr(librdkafka(given, "admin"))))


def test_the_sink_takes_the_largest_message_of_the_journal_whatever_its_buffer() -> None:
    options = java_settings(
        access("journal.max-message-bytes=40MiB", "kafka.producer.buffer.memory=1000000"), "producer"
    )
    assert options["max.request.size"] == options["buffer.memory"] == str(41 << 20)


def test_no_client_of_kafka_writes_to_stderr_itself(capfd: pytest.CaptureFixture[str]) -> None:
    # Fatal errors are logged at any log_level; here everything is logged, for want of a fatal error.
    loud = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "debug": "all", "log_level": 7}
    client = Consumer({**QUIET, **loud})
    client.poll(1)
    client.close()
    assert capfd.readouterr().err == ""


def test_every_client_of_kafka_is_quiet() -> None:
    clients = {"Producer", "Consumer", "AdminClient"}
    made = [
        (path.relative_to(ROOT).as_posix(), ast.unparse(_function(tree, node)))
        for path in (ROOT / "engine").rglob("*.py")
        if "confluent_kafka" in (text := path.read_text()) or "engine.kafka.types" in text
        for tree in [ast.parse(text)]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in clients
    ]
    assert len(made) == 4
    assert {path for path, _ in made} == {"engine/kafka/clients.py"}
    assert all("**QUIET" in maker for _, maker in made)


def _function(tree: ast.Module, node: ast.Call) -> ast.AST:
    """The function that the call is in."""
    return next(each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and node in ast.walk(each))
