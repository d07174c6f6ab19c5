"""The commands against a real Kafka and a real Artemis."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.embedded import EmbeddedArtemis, EmbeddedKafka
from tests.commands import CommandResult, finished
from tests.topic_records import ordered_producer

JMS_BRIDGE = (sys.executable, "-m", "engine")
CONFIGURATION = """\
bridge.id=b1
kafka.bootstrap.servers={kafka}
journal.topic={journal}
source.s.type=stomp
source.s.url={artemis}
source.s.destinations=queue:orders
routes.orders.in.include=msg.address==orders
routes.orders.out.topic=orders
"""


Run = Callable[..., CommandResult]


@pytest.fixture
def journal(topic: Callable[..., str]) -> str:
    return topic("journal", partitions=2)


@pytest.fixture
def queue() -> str:
    return f"queue:{uuid.uuid4().hex}"


@pytest.fixture
def configuration(tmp_path: Path, kafka: EmbeddedKafka, artemis: EmbeddedArtemis, journal: str) -> Path:
    file = tmp_path / "jms-bridge.properties"
    file.write_text(CONFIGURATION.format(kafka=kafka.bootstrap, artemis=artemis.stomp_url, journal=journal))
    return file


@pytest.fixture
def run(configuration: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Calls a command as its process would."""

    def call(*arguments: str, config: Path = configuration) -> CommandResult:
        return finished(capsys, *arguments, "-c", str(config))

    return call


def test_a_text_sent_to_a_queue_is_received_with_its_properties(run: Run, queue: str) -> None:
    sent = run(
        *("send", queue, "grüße", "--property", "region=emea", "--correlation-id", "42", "--reply-to", "queue:answers"),
        *("--type", "greeting", "--priority", "7"),
    )
    assert sent == (0, "", sent.err)
    assert sent.err.startswith(f"sent 1 message to {queue} at stomp://127.0.0.1:")
    received = run("receive", queue, "--count", "1", "--json")
    message = json.loads(received.out)
    headers = {header["name"]: header["value"] for header in message["headers"]}
    assert message["body"] == "grüße"
    expected = {
        "jms.region": "emea",
        "jms.JMSCorrelationID": "42",
        "jms.JMSType": "greeting",
        "jms.JMSPriority": "7",
        "jms.JMSDeliveryMode": "PERSISTENT",
        "jms.JMSReplyTo": "queue:answers",
        "jms.JMSDestination": queue,
        "jmsbridge.body": "text",
    }
    assert expected.items() <= headers.items()


def test_a_binary_body_arrives_byte_for_byte_and_is_shown_readable(run: Run, queue: str, tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(b"\x00\xff\n\x1b")
    for _ in range(3):
        assert run("send", queue, "--body-file", str(tmp_path / "body")).code == 0
    assert "    hex:00ff0a1b\n" in run("receive", queue, "--count", "1").out
    assert "    base64:AP8KGw==\n" in run("receive", queue, "--count", "1", "--base64").out
    assert json.loads(run("receive", queue, "--count", "1", "--json").out)["body_base64"] == "AP8KGw=="


def test_receiving_from_a_queue_takes_only_as_many_messages_as_asked_for(run: Run, queue: str) -> None:
    assert run("send", queue, "hello", "--count", "50").err.startswith("sent 50 messages")
    assert len(run("receive", queue, "--count", "20", "--json").out.splitlines()) == 20
    assert len(run("receive", queue, "--json").out.splitlines()) == 30
    empty = run("receive", queue, "--timeout", "0.5")
    assert empty == (0, "", f"no messages in {queue}\n")


def test_a_message_sent_to_kafka_has_the_form_of_the_journal(run: Run, journal: str) -> None:
    sent = run(
        *(
            "send",
            f"kafka:{journal}",
            "hello",
            "--typed-property",
            "n:int=5",
            "--header",
            "JMSDestination=queue:orders",
        ),
        *("--header", "JMSMessageID=ID:1"),
    )
    assert sent.code == 0
    assert sent.err.startswith(f"sent 1 message to kafka:{journal}, the last one to {journal}:")
    shown = run("journal", "tail").out.splitlines()
    assert shown[0].startswith(f"{journal}:")
    assert [line.split() for line in shown[1:-1]] == [
        ["key", "ID:1"],
        ["jms.JMSDestination", "queue:orders"],
        ["jms.JMSMessageID", "ID:1"],
        ["jms.JMSDeliveryMode", "PERSISTENT"],
        ["jms.n", "5"],
        ["jmsbridge.types", "n=int"],
        ["jmsbridge.body", "text"],
        ["body", "5", "bytes"],
        ["hello"],
    ]


def test_the_journals_tail_is_the_newest_messages_of_all_partitions_oldest_first(run: Run, journal: str) -> None:
    for number in range(12):
        run("send", f"kafka:{journal}", str(number), "--header", f"JMSMessageID=ID:{number}")
    shown = [json.loads(line) for line in run("journal", "tail", "-n", "5", "--json").out.splitlines()]
    assert [record["body"] for record in shown] == ["7", "8", "9", "10", "11"]
    assert {record["partition"] for record in shown} == {0, 1}


def test_the_journals_tail_shows_messages_that_match_a_predicate(run: Run, journal: str) -> None:
    for number in range(30):
        body = json.dumps({"amount": number})
        run("send", f"kafka:{journal}", body, "-H", f"JMSMessageID=ID:{number}", "-p", f"even={number % 2 == 0}")
    where = "even = 'True' AND msg.body.amount < 11"
    shown = [
        json.loads(line) for line in run("journal", "tail", "-n", "3", "--json", "--where", where).out.splitlines()
    ]
    assert [record["key"] for record in shown] == ["ID:6", "ID:8", "ID:10"]
    assert len(run("journal", "tail", "--json", "-n", "100", "--where", where).out.splitlines()) == 6
    none = run("journal", "tail", "--where", "msg.body.amount > 29")
    assert (none.code, none.err) == (0, f"no such messages in '{journal}'\n")
    wrong = run("journal", "tail", "--where", "amount >")
    assert wrong.code == 64
    assert wrong.err.startswith("--where:9: error: found the end, expected")


def test_what_is_in_the_journal_can_be_explained_by_its_position(run: Run, journal: str) -> None:
    sent = run("send", f"kafka:{journal}", "-H", "JMSDestination=queue:orders", "-H", "JMSMessageID=ID:1", "hello")
    position = sent.err.rsplit(" ", 1)[1].strip()
    explained = run("explain", "--journal", position.partition(":")[2])
    assert explained.code == 0
    assert "result   published to kafka:orders by route 'orders', key ID:1" in explained.out
    assert f"jmsbridge.position   {position}" in explained.out


def test_a_topic_is_read_to_its_end_or_to_a_count_or_until_nothing_comes(run: Run, topic: Callable[..., str]) -> None:
    name = topic("orders", partitions=3)
    run("send", f"kafka:{name}", "hello", "--count", "7")
    assert len(run("receive", f"kafka:{name}", "--json").out.splitlines()) == 7
    assert len(run("receive", f"kafka:{name}", "--json", "--count", "3").out.splitlines()) == 3
    empty = run("receive", f"kafka:{name}", "--from", "end", "--timeout", "0.5")
    assert empty.err == (f"waiting for the first message in kafka:{name}, 0.5 s at most\nno messages in kafka:{name}\n")
    short = run("receive", f"kafka:{name}", "--count", "8", "--timeout", "0.5", "--json")
    assert (short.code, len(short.out.splitlines())) == (6, 7)
    assert short.err == f"jms-bridge: 7 of 8 messages came from kafka:{name} before 0.5 s passed without one\n"


def test_odd_records_are_shown_and_do_not_steer_the_terminal(
    run: Run, kafka: EmbeddedKafka, topic: Callable[..., str]
) -> None:
    name = topic("odd")
    producer = ordered_producer(kafka.bootstrap)
    headers = [(f"h{number}", b"x") for number in range(300)]
    producer.produce(name, key=None, value=None, headers=[("none", None), ("bad", b"\xff"), ("esc", b"\x1b[2J")])
    producer.produce(name, key=b"\xfe", value=b"x" * 900_000, headers=headers)
    producer.produce(name, value=b"", headers=[("größe", "ü".encode()), ("a b.c-d", b"")])
    assert producer.flush(10) == 0
    shown = run("receive", f"kafka:{name}").out
    assert "\x1b" not in shown
    assert "  none  (none)\n  bad   hex:ff\n  esc   hex:1b5b324a\n" in shown
    assert "… 240 headers more (--json shows all)" in shown
    assert "… (900000 bytes in all)" in shown
    assert "  größe    ü\n" in shown
    first, second, third = map(json.loads, run("receive", f"kafka:{name}", "--json").out.splitlines())
    assert first["body"] is None
    assert (len(second["body"]), len(second["headers"]), second["key_base64"]) == (900_000, 300, "/g==")
    assert third["body"] == ""


def test_following_ends_with_ctrl_c_and_shows_what_came_meanwhile(
    run: Run, configuration: Path, topic: Callable[..., str]
) -> None:
    name = topic("orders")
    command = [*JMS_BRIDGE, "receive", f"kafka:{name}", "--follow", "--json", "-c", str(configuration)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for body in ("one", "two"):
            run("send", f"kafka:{name}", body)
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["body"] == body
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_reader_that_has_seen_enough_ends_the_command_in_silence(
    run: Run, configuration: Path, topic: Callable[..., str]
) -> None:
    name = topic("orders")
    run("send", f"kafka:{name}", "x" * 1000, "--count", "2000")
    command = [*JMS_BRIDGE, "receive", f"kafka:{name}", "--json", "-c", str(configuration)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(10) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("receive", "kafka:no-such-topic"), 64, "topic 'no-such-topic' does not exist on Kafka at 127.0.0.1:"),
        (("receive", "kafka:no/topic"), 64, "'no/topic' is not a valid topic name"),
        (("send", "kafka:no-such-topic", "x"), 4, "refuses the message to 'no-such-topic'"),
        (("explain", "--journal", "7:0"), 64, "has no partition 7, only 0 to 1"),
        (("explain", "--journal", "0:99"), 64, "no such record; partition 0 of "),
        (("explain", "--journal", "99"), 64, "'99' is not a position: expected PARTITION:OFFSET"),
    ],
)
def test_what_is_not_there_is_one_clear_line(run: Run, arguments: tuple[str, ...], code: int, said: str) -> None:
    result = run(*arguments)
    assert result.code == code
    assert said in result.err
    assert result.err.count("\n") == 1
    assert result.out == ""


def test_brokers_that_are_down_are_one_clear_line_each(run: Run, configuration: Path) -> None:
    text = configuration.read_text()
    down = configuration.with_name("down.properties")
    lines = [line for line in text.splitlines() if not line.startswith(("kafka.", "source.s.url"))]
    lines += ["kafka.bootstrap.servers=127.0.0.1:1", "source.s.url=stomp://127.0.0.1:1"]
    down.write_text("\n".join(lines))
    started = time.monotonic()
    for arguments, said in (
        (("receive", "kafka:orders"), "jms-bridge: Kafka at 127.0.0.1:1 does not answer ("),
        (
            ("send", "queue:orders", "x"),
            "jms-bridge: stomp://127.0.0.1:1 does not answer (Connection refused); is the broker running",
        ),
        (
            ("receive", "queue:orders"),
            "jms-bridge: stomp://127.0.0.1:1 does not answer (Connection refused); is the broker running",
        ),
    ):
        result = run(*arguments, config=down)
        assert result.code == 6
        assert result.err.startswith(said)
        assert result.err.count("\n") == 1
    assert time.monotonic() - started < 30


def test_a_port_that_speaks_something_else_is_told_as_such(run: Run, kafka: EmbeddedKafka, queue: str) -> None:
    result = run("send", queue, "x", "--url", f"stomp://{kafka.bootstrap}")
    assert result.code == 6
    assert "is this its STOMP port?" in result.err


def test_the_address_of_a_broker_may_be_given_instead_of_a_source(
    run: Run, artemis: EmbeddedArtemis, queue: str
) -> None:
    assert run("send", queue, "hello", "--url", artemis.stomp_url).code == 0
    assert run("receive", queue, "--url", artemis.stomp_url, "--count", "1").code == 0
    wrong = run("send", queue, "hello", "--url", "http://127.0.0.1:1")
    assert (wrong.code, wrong.err.count("\n")) == (64, 1)


def test_a_listener_of_a_topic_gets_what_is_published_while_it_listens(run: Run, configuration: Path) -> None:
    destination = f"topic:prices-{uuid.uuid4().hex}"
    command = [*JMS_BRIDGE, "receive", destination, "--count", "1", "--json", "-c", str(configuration)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        while process.poll() is None:
            assert run("send", destination, "7").code == 0
        assert process.stdout is not None
        assert json.loads(process.stdout.read())["body"] == "7"
        assert process.returncode == 0
