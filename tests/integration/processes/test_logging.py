"""What reaches stderr, seen from outside: each test is a process of its own."""

import json
import os
import subprocess
import sys

import pytest

from engine.printable import printable
from engine.telemetry.logging import Redactor, secrets_of
from routes.config import loads

SECRET = 'pa"ss-wörd'

CONFIG = f"""
bridge.id=test
kafka.bootstrap.servers=127.0.0.1:1
kafka.sasl.password=kafka-secret
routes.a.name=a
routes.a.in.include=msg.address==a
routes.a.out.topic=topic-a
source.jms.type=stomp
source.jms.url=stomp://127.0.0.1:1
source.jms.destinations=queue:a
source.jms.username=user
source.jms.password={SECRET}
sink.jms.type=stomp
sink.jms.username=user
sink.jms.password=sink-secret
sink.nats.type=nats
sink.nats.token=nats-secret
"""

PROGRAM = """
import logging, sys
import structlog
import engine.telemetry.logging
from engine.printable import printable
from engine.telemetry.logging import Redactor
engine.telemetry.logging.secrets_of = lambda config: frozenset([sys.argv[1]])
engine.telemetry.logging.setup(object())
log = structlog.get_logger("engine.test")
url = "stomp://user:" + sys.argv[1] + "@host"
log.info("connected", url=url, password="short", count=3, nested={"a": [sys.argv[1]], 1: 2})
log.debug("hidden")
logging.getLogger("stomp.py").warning("login %s refused", sys.argv[1])
logging.getLogger("stomp.py").info("hidden")
try:
    raise ValueError("cannot log in with " + sys.argv[1])
except ValueError:
    log.exception("failed")
"""

REPEATS = """
import logging
import structlog
import engine.telemetry.logging
engine.telemetry.logging.setup(component="source:orders")
log = structlog.get_logger("engine.test")
for number in range(100):
    log.warning("message rejected", message=f"ID:{number}")
    log.error("refused", number=number)
    logging.getLogger("library").warning("no answer from %s", number)
"""


def logged(**environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, SECRET],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    return done.stderr


def test_no_secret_is_in_any_line_whoever_logs_it() -> None:
    text = logged()
    assert SECRET not in text
    assert "short" not in text
    assert "stomp://user:******@host" in text
    assert "login ****** refused" in text
    assert "ValueError: cannot log in with ******" in text
    assert "hidden" not in text


def test_json_lines_hold_the_same_and_no_secret() -> None:
    lines = [json.loads(line) for line in logged(JMS_BRIDGE_LOG="json").splitlines()]
    assert SECRET not in str(lines)
    first, second, third = lines
    assert (first["event"], first["count"], first["password"], first["level"]) == ("connected", 3, "******", "info")
    assert first["nested"] == {"a": ["******"], "1": 2}
    assert (second["event"], second["logger"]) == ("login ****** refused", "stomp.py")
    assert third["exception"].endswith("ValueError: cannot log in with ******")


def test_a_level_can_be_chosen() -> None:
    assert "hidden" in logged(JMS_BRIDGE_LOG_LEVEL="debug")
    assert "connected" not in logged(JMS_BRIDGE_LOG_LEVEL="error")


def test_a_level_that_is_none_is_refused_with_the_ones_there_are() -> None:
    code = "import engine.telemetry.logging; engine.telemetry.logging.setup()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "JMS_BRIDGE_LOG_LEVEL": "loud"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "UsageError: JMS_BRIDGE_LOG_LEVEL=loud: expected one of debug, info, warning, error" in done.stderr.replace(
        "engine.errors.", ""
    ).replace("\n", " ")


def test_every_password_of_a_configuration_is_a_secret() -> None:
    assert secrets_of(loads(CONFIG)) == {SECRET, "kafka-secret", "sink-secret", "nats-secret"}


def test_a_secret_within_a_longer_one_leaves_no_rest() -> None:
    assert Redactor(["abcd", "abcdefgh", ""])("x abcdefgh abcd") == "x ****** ******"


def test_secrets_within_other_values_are_secrets_of_their_own() -> None:
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="jaas-secret";'
    config = loads(
        f"{CONFIG}kafka.sasl.jaas.config={login}\nkafka.security.protocol=SASL_PLAINTEXT\nkafka.sasl.mechanism=PLAIN\n"
        "spark.driver.extraJavaOptions=-Djavax.net.ssl.trustStorePassword=java-secret -Xmx1g\n"
    )
    assert {"jaas-secret", "java-secret"} <= secrets_of(config)


def test_the_secret_of_the_seals_is_a_secret() -> None:
    secret = "4d" * 32
    assert secret in secrets_of(loads(f"{CONFIG}bridge.secret={secret}\n"))


@pytest.mark.parametrize("form", ["json", "text"])
def test_no_line_steers_a_terminal(form: str) -> None:
    program = (
        "import structlog; from engine.telemetry.logging import setup; setup();"
        "log = structlog.get_logger('engine.x'); log.warning('a\\x9b2J', why='\\x1b]0;b', rate=float('nan'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "JMS_BRIDGE_LOG": form},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "2J" in done.stderr
    assert done.stderr == printable(done.stderr)
    if form == "json":
        assert (json.loads(done.stderr)["event"], json.loads(done.stderr)["rate"]) == ("a\x9b2J", None)


def test_a_process_logs_a_few_lines_of_a_kind_and_at_its_end_how_many_more() -> None:
    done = subprocess.run(
        [sys.executable, "-c", REPEATS],
        env={**os.environ, "JMS_BRIDGE_LOG": "json"},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert {line["component"] for line in lines} == {"source:orders"}
    assert [line["message"] for line in lines if line["event"] == "message rejected"] == [f"ID:{n}" for n in range(20)]
    assert sum(line["event"] == "refused" for line in lines) == 100
    assert sum(line["event"].startswith("no answer") for line in lines) == 20
    told = [(line["what"], line["left_out"], line["level"]) for line in lines if "left_out" in line]
    assert told == [("message rejected", 80, "warning"), ("no answer from %s", 80, "warning")]
