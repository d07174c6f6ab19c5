"""Everything lint finds: the whole text of each fault, its place, and that one run finds them all."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routes.config import lint, lint_text, load
from routes.errors import ConfigurationError, Level
from tests.unit.config.start import START, faults


def fault(*lines: str) -> str:
    (only,) = faults(*lines)
    return only


def test_a_configuration_without_a_fault_has_none() -> None:
    linted = lint_text(START)
    assert linted.faults == ()
    assert linted.config is not None


def test_all_faults_are_found_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "bad.properties"
    file.write_text(
        "rotues.orders.name=a\n"
        "routes.foo.in.inclde=b\n"
        "source.a.urll=stomp://h:1\n"
        "routes.x.in.include=msg.address==foo && \\\n"
        "    amount => 7\n"
        "router.mode=realtim\n"
        "journal.partitions=0\n"
        "routes.x.out.topic=or ders\n"
    )
    with pytest.raises(ConfigurationError) as raised:
        load(file)
    assert [(found.line, found.column) for found in raised.value.faults] == [
        (0, 0),
        (0, 0),
        (1, 1),
        (2, 1),
        (3, 1),
        (5, 12),
        (6, 13),
        (7, 20),
        (8, 22),
    ]
    assert str(raised.value).splitlines()[-3:] == [
        f"{file}:8:22: error: 'or ders' is not a valid Kafka topic name "
        "(letters, digits, '.', '_' and '-', 249 at most)",
        "    routes.x.out.topic=or ders",
        "                         ^",
    ]


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("rotues.x.name", "routes.x.name"),
        ("routes.foo.in.inclde", "routes.foo.in.include"),
        ("routes.foo.include", "routes.foo.in.include"),
        ("routes.foo.conv.keys", "routes.foo.conv.key"),
        ("routes.foo.mapp.key", "routes.foo.map.key"),
        ("source.a.urll", "source.a.url"),
        ("sources.a.url", "source.a.url"),
        ("routing.deadletter-topic", "routing.dead-letter-topic"),
        ("routing.on_soft_failure", "routing.on-soft-failure"),
        ("journal.partition", "journal.partitions"),
        ("bridgeid", "bridge.id"),
        ("Router.Mode", "router.mode"),
        ("kafka.bootstrap.server", "kafka.bootstrap.servers"),
        ("kafka.producer.linger.sm", "kafka.producer.linger.ms"),
        ("kafka.consumer.fetch.max.wait", "kafka.consumer.fetch.max.wait.ms"),
    ],
)
def test_an_unknown_key_is_an_error_with_the_nearest_known_one(key: str, nearest: str) -> None:
    assert fault(f"{key}=x").splitlines() == [
        f"6:1: error: unknown key '{key}' (did you mean '{nearest}'?)",
        f"    {key}=…",
        "    ^",
    ]


def test_a_key_unlike_any_other_leads_to_the_documentation() -> None:
    assert fault("quux=1").startswith("6:1: error: unknown key 'quux' (`jms-bridge config docs` lists all keys)")


def test_a_name_with_a_dot_is_explained() -> None:
    assert "a name has no dots in it: 'routes.europe-all-orders.in.include'" in fault(
        "routes.europe.all.orders.in.include=TRUE"
    )


def test_a_value_without_a_key_is_a_fault() -> None:
    assert fault("=x").startswith("6:1: error: there is no key before the separator (write key=value)")


def test_a_repeated_key_warns_with_both_lines_and_the_later_value_counts() -> None:
    linted = lint_text(START + "bridge.id=c\n")
    assert [str(found).splitlines()[0] for found in linted.faults] == [
        "6:1: warning: line 6 sets 'bridge.id' again, after line 1 (the later one counts; remove one of them)"
    ]
    assert linted.config is not None
    assert linted.config.bridge_id == "c"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("routing.dead-letter-topic", "routing.dead-letter.topic"),
        ("routes.r.conv.key", "routes.r.map.key"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_two_spellings_of_a_key_are_one_key(one: str, other: str, turned: bool) -> None:
    first, second = (other, one) if turned else (one, other)
    linted = lint_text(f"{START}{first}=first\n{second}=second\n")
    assert linted.config is not None
    assert "second" in (linted.config.routing.dead_letter_topic, linted.config.routes[0].key)
    (found,) = linted.faults
    assert found.message == f"line 7 sets '{second}' again, after line 6 (as '{first}')"


def test_a_fault_in_an_overridden_value_does_not_matter() -> None:
    assert [found.level for found in lint_text(START + "router.mode=x\nrouter.mode=batch\n").faults] == [Level.WARNING]


def test_the_caret_of_a_predicate_stands_under_its_character_on_the_second_line() -> None:
    assert fault("routes.r.in.exclude = region='a' \\", "      AND \\u0061mount >> 7") == (
        "7:24: error: found '>', expected a field or property, a number, a text in single quotes, TRUE or FALSE or '('"
        "\n          AND \\u0061mount >> 7"
        "\n                           ^"
    )


def test_a_predicate_that_ends_too_early_has_its_caret_at_the_end() -> None:
    found = lint_text(START + "routes.r.in.exclude=region =").faults[0]
    assert (found.line, found.column, found.key) == (6, 29, "routes.r.in.exclude")


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_an_empty_file_says_what_to_write(tmp_path: Path, text: str) -> None:
    file = tmp_path / "empty.properties"
    file.write_text(text)
    assert [str(found) for found in lint(file).faults] == [
        f"{file}: error: nothing is configured "
        "(bridge.id, a source and a route are the least; `jms-bridge config docs` lists all keys)"
    ]


def test_a_file_that_cannot_be_read_is_one_fault(tmp_path: Path) -> None:
    assert [str(found) for found in lint(tmp_path).faults] == [
        f"{tmp_path}: error: this is a directory, not a properties file (name the file itself)"
    ]


def test_missing_keys_are_named_at_the_first_line_of_their_route_or_source() -> None:
    found = [str(f).splitlines()[0] for f in lint_text("routes.a.name=x\nsource.b.workers=2\n").faults]
    assert found == [
        "error: 'bridge.id' is missing (as in bridge.id=bridge-1)",
        "1:1: error: route 'a' has no 'routes.a.in.include' (as in routes.a.in.include=msg.address==orders)",
        "1:1: error: route 'a' has no 'routes.a.out.topic' (as in routes.a.out.topic=nats:orders.${msg.header.region})",
        "2:1: error: source 'b' has no 'source.b.type' (as in source.b.type=stomp)",
        "2:1: error: source 'b' has no 'source.b.destinations' "
        "(as in source.b.destinations=queue:orders, topic:prices)",
    ]


def test_a_configuration_without_routes_or_sources_says_so() -> None:
    linted = lint_text("bridge.id=b\nroutes.r.in.include=TRUE\nroutes.r.out.topic=t\n")
    assert [f.message for f in linted.faults] == ["no source is configured"]
    assert linted.config is not None
    assert [f.message for f in lint_text("bridge.id=b\n").faults] == ["no route is configured"]


TOKENS = (
    "kafka.security.protocol=SASL_SSL",
    "kafka.sasl.oauthbearer.client.id=b",
    "kafka.sasl.oauthbearer.client.secret=secret-of-b",
)
ISSUER = "kafka.sasl.oauthbearer.issuer="
ENDPOINT = "kafka.sasl.oauthbearer.token.endpoint.url="
Q = "routes.q.in.include=x=1"
ROUTE = "routes.q.in.include=x=1", "routes.q.out.topic=t"


@pytest.mark.parametrize(
    ("lines", "place", "message"),
    [
        ((*ROUTE, "routes.q.name=r"), "8:15", "the route name 'r' is taken by routes.r"),
        (("routes.q.in.include=msg.address = 'q'", ROUTE[1]), "6:21", "never gets a message: 'r' takes the same"),
        (("routing.on-soft-failure=dead-letter",), "6:25", "'dead-letter' needs a topic"),
        (("routing.on-unmatched=dead-letter",), "6:22", "'dead-letter' needs a topic"),
        (("routes.r.on-soft-failure=dead-letter",), "6:26", "'dead-letter' needs a topic"),
        (("journal.topic=t",), "5:20", "'t' is the journal"),
        (("routing.dead-letter-topic=t",), "5:20", "'t' is the dead-letter topic"),
        (("journal.topic=j", "routing.dead-letter-topic=j"), "7:27", "'j' is the journal"),
        (("journal.state-topic=t",), "5:20", "'t' is the topic of the bridge's own state"),
        (("source.s.password=x",), "6:19", "a password without a user name"),
        (("source.s.tls.verify=false",), "6:1", "'source.s.tls.verify' has no effect without TLS"),
        (("source.s.url=stomp+ssl://h:1", "source.s.tls.ca=no.pem"), "7:17", "there is no file 'no.pem'"),
        (("source.s.subscription=x",), "6:23", "a durable subscription of no topic"),
        (("router.interval=4s",), "6:17", "in real-time mode the interval is 5s or more"),
        (("embedded=on", "kafka.bootstrap.servers=h:1"), "6:10", "'on' starts a Kafka beside"),
        (("embedded=off", "source.s.url=stomp://h:1"), "6:10", "'off' leaves no Kafka"),
        (("embedded=off", "kafka.bootstrap.servers=h:1"), "6:10", "'off' leaves no broker for source 's'"),
        (("embedded.stomp.port=8480",), "6:21", "port 8480 is also the one of 'http.address'"),
        (("kafka.producer.acks=1",), "6:1", "'kafka.producer.acks' can only be 'all'"),
        (("kafka.key.serializer=x",), "6:1", "'kafka.key.serializer' is set by the bridge"),
        (("kafka.consumer.isolation.level=read_uncommitted",), "6:1", "can only be 'read_committed'"),
        (("kafka.producer.bootstrap.servers=h:1",), "6:1", "'kafka.producer.bootstrap.servers' is not supported"),
        (("kafka.my.plugin=1",), "6:1", "'kafka.my.plugin' is not a setting of Kafka's clients"),
        (("kafka.enable.ssl.certificate.verification=false",), "6:1", "is not supported"),
        (("kafka.security.protocol=SSLL",), "6:25", "'SSLL' is not PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"),
        (("kafka.sasl.mechanism=NTLM",), "6:22", "'NTLM' is not PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER,"),
        ((*TOKENS, "kafka.sasl.mechanism=OAUTHBEARER"), "9:22", "needs an address to get tokens from"),
        ((*TOKENS, "kafka.sasl.mechanism=OAUTHBEARER", f"{ISSUER}login"), "10:31", "'login' is not a URL"),
        (
            (*TOKENS, f"{ISSUER}https://i", "kafka.sasl.mechanism=OAUTHBEARER", f"{ENDPOINT}https://i/t"),
            "9:31",
            "both set",
        ),
        ((TOKENS[0], "kafka.sasl.mechanism=OAUTHBEARER", f"{ISSUER}https://i"), "6:25", "needs a login"),
        (
            (*TOKENS, "kafka.sasl.mechanism=OAUTHBEARER", f"{ISSUER}http://i"),
            "10:31",
            "goes over the network in the clear",
        ),
        (("kafka.sasl.jaas.config=x",), "6:24", "the value is not a JAAS configuration"),
        (("kafka.ssl.ca.location=no.pem",), "6:23", "there is no file 'no.pem'"),
        (("spark.sql.streaming.checkpointLocation=x",), "6:1", "is set by the bridge"),
        (("spark.sql.ansi.enabled=false",), "6:1", "can only be 'true'"),
        (
            (
                Q,
                "routes.q.out.topic=nats:a",
            ),
            "7:20",
            "there is no sink of type nats",
        ),
        ((Q, "routes.q.out.topic=nast:a", "sink.n.type=nats"), "7:20", "'nast' is neither kafka nor a sink"),
        (
            (Q, "routes.q.out.topic=n:a", "sink.n.type=nats", "sink.n.url=stomp://h:1"),
            "9:12",
            "is not a URL for type nats",
        ),
        ((Q, "routes.q.out.topic=n:a..b", "sink.n.type=nats"), "7:20", "'a..b' is not a destination of type nats"),
        ((Q, "routes.q.out.topic=n:a.*", "sink.n.type=nats"), "7:20", "'a.*' is not a destination of type nats"),
        (
            (Q, "routes.q.out.topic=a b.${msg.header.x}"),
            "7:20",
            "'a b.${msg.header.x}' is not a valid Kafka topic name",
        ),
        ((Q, "routes.q.out.topic=s:a", "sink.s.type=stomp"), "7:20", "'a' is not a destination of type stomp"),
        (
            (Q, "routes.q.out.topic=nats:a", "sink.n.type=nats", "sink.m.type=nats"),
            "7:20",
            "there are 2 sinks of type nats",
        ),
        (("sink.n.type=nats", "sink.n.format=auto"), "7:15", "'auto' is for sources"),
        (("sink.n.type=nats", "sink.n.reply-to=a.*"), "7:17", "'a.*' is not a place for replies"),
        (("sink.kafka.type=nats",), "6:1", "a sink cannot be named 'kafka'"),
        (("sink.n.type=nats", "sink.n.topic=jms-bridge.journal"), "7:14", "'jms-bridge.journal' is the journal"),
        ((Q, "routes.q.out.topic=jms-bridge.sink.n", "sink.n.type=nats"), "7:20", "is the topic of sink 'n'"),
        (("source.s.stream=X",), "6:1", "'source.s.stream' is for type nats, not stomp"),
        (("sink.n.type=nats", "sink.n.token=token-1", "sink.n.username=u"), "7:14", "sink 'n' has 2 ways to log in"),
        (("sink.n.type=stomp", "sink.n.stream=true"), "7:1", "'sink.n.stream' is for type nats, not stomp"),
        (("embedded.nats.port=8480",), "6:20", "port 8480 is also the one of 'http.address'"),
        (("http.address=127.0.0.1:9092",), "6:14", "port 9092 is also the one of 'embedded.kafka.port'"),
        (("http.address=localhost:61613",), "6:14", "port 61613 is also the one of 'embedded.stomp.port'"),
        (("http.metrics-address=127.0.0.1:8480",), "6:22", "port 8480 is also the one of 'http.address'"),
        (
            ("sink.l.type=amqp", "sink.l.listen=amqp://127.0.0.1:8480"),
            "7:15",
            "port 8480 is also the one of 'http.address'",
        ),
    ],
)
def test_what_must_hold_between_keys_is_checked(lines: tuple[str, ...], place: str, message: str) -> None:
    found = fault(*lines)
    assert found.startswith(f"{place}: ")
    assert message in found.splitlines()[0]


@pytest.mark.parametrize("line", ["source.s.url=stomp://u:p@h:1", "sink.n.url=stomp://u:p@h:1"])
def test_a_login_in_a_url_belongs_into_keys_of_its_own_section(line: str) -> None:
    (found,) = (each for each in faults("sink.n.type=stomp", line) if "a URL holds no user name" in each)
    assert "set username and password of the source or sink instead" in found


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "localhost"])  # noqa: S104
def test_a_port_on_all_addresses_is_taken_on_each_of_them(host: str) -> None:
    found = faults("sink.l.type=amqp", f"sink.l.listen=amqp://{host}:8480")
    assert any(each.startswith("7:15: ") and "port 8480 is also the one of 'http.address'" in each for each in found)


@pytest.mark.parametrize(
    "lines",
    [
        ("kafka.producer.acks=all", "kafka.enable.idempotence=true", "spark.sql.ansi.enabled=true"),
        ("router.mode=batch", "router.interval=0s"),
        ("http.address=127.0.0.1:0", "embedded.stomp.port=61700"),
        ("http.address=127.0.0.1:0", "http.metrics-address=127.0.0.1:0"),
        ("http.address=127.0.0.1:9092", "kafka.bootstrap.servers=h:1"),
        ("http.address=127.0.0.1:4222",),
        ("http.address=127.0.0.1:9092", "embedded=off", "kafka.bootstrap.servers=h:1", "source.s.url=stomp://h:1"),
        ("http.address=127.0.0.1:61613", "embedded=off", "kafka.bootstrap.servers=h:1", "source.s.url=stomp://h:1"),
        (
            "sink.l.type=amqp",
            "sink.l.listen=amqp://127.0.0.1:5674",
            "sink.k.type=amqp",
            "sink.k.listen=amqp://[::1]:5674",
        ),
        ("routes.r.in.exclude=x=1", "routes.q.in.include=msg.address==q", "routes.q.out.topic=t"),
        ("kafka.producer.linger.ms=5", "kafka.consumer.fetch.max.wait.ms=50", "kafka.request.timeout.ms=9000"),
        ("spark.sql.shuffle.partitions=4", "spark.my.conf=${spark.home}"),
        ("sink.n.type=nats", "sink.n.reply-to=bridge.replies", "sink.n.stream=true", "sink.n.format=typed"),
        ("sink.n.type=nats", "routes.q.in.include=x=1", "routes.q.out.topic=nats:a.${msg.header.region}.b"),
        ("sink.n.type=stomp", "routes.q.in.include=x=1", "routes.q.out.topic=n:${msg.header.JMSReplyTo}"),
        ("routes.q.in.include=x=1", "routes.q.out.topic=orders.${msg.header.region}"),
        ("source.n.type=nats", "source.n.destinations=a.*, b.>, >", "source.n.stream=S", "source.n.url=tls://h:1"),
    ],
)
def test_what_is_in_order_is_not_complained_about(lines: tuple[str, ...]) -> None:
    assert faults(*lines) == []


@pytest.mark.parametrize(
    ("kind", "destinations", "column", "message"),
    [
        ("stomp", "queue:a, prices", 32, "'prices' is not a destination (write queue:prices or topic:prices)"),
        ("nats", "a.b, a..b", 28, "'a..b' is not a subject"),
        ("nats", "a.>.b", 23, "'a.>.b' is not a subject"),
    ],
)
def test_what_a_source_reads_is_written_as_its_system_writes_it(
    kind: str, destinations: str, column: int, message: str
) -> None:
    found = fault(f"source.x.type={kind}", f"source.x.destinations={destinations}")
    assert found.startswith(f"7:{column}: error: {message}")


def test_a_sasl_protocol_needs_a_mechanism_and_a_login() -> None:
    messages = [line.splitlines()[0] for line in faults("kafka.security.protocol=SASL_SSL")]
    assert [message.partition(" (")[0] for message in messages] == [
        "6:25: error: 'SASL_SSL' needs a mechanism",
        "6:25: error: 'SASL_SSL' needs a login",
    ]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("kafka.ssl.truststore.location=s.jks",), "not all of the bridge's Kafka clients can read a JKS truststore"),
        (
            ("kafka.ssl.truststore.location=s.p12",),
            "not all of the bridge's Kafka clients can read a PKCS12 truststore",
        ),
        (("kafka.ssl.keystore.location=s.jks",), "not all of the bridge's Kafka clients can read a JKS keystore"),
        (("kafka.ssl.keystore.location=s.p12",), "a PKCS12 keystore needs its password"),
        (
            ("kafka.ssl.truststore.location=s.pem", "kafka.ssl.truststore.password=x"),
            "a PEM truststore has no password",
        ),
        (("kafka.ssl.keystore.location=store",), "'store' does not tell its type"),
        (("kafka.ssl.key.location=s.p12",), "'kafka.ssl.key.location' alone is of no use"),
    ],
)
def test_certificates_that_only_one_client_can_read_are_refused(
    tmp_path: Path, lines: tuple[str, ...], message: str
) -> None:
    for name in ("s.jks", "s.p12", "s.pem", "store"):
        (tmp_path / name).touch()
    (found,) = lint_text(START + "\n".join(lines), tmp_path).faults
    assert found.message == message


_SHIPPED = (Path(__file__).parents[3] / "engine/cli/templates/jms-bridge.properties").read_text(encoding="utf-8")
_EDITS = st.sampled_from(
    [
        "",
        "x",
        ".",
        "=",
        "\\",
        "\n",
        " ",
        "'",
        '"',
        "(",
        "${",
        "${env:",
        "${file:",
        "}",
        "\x00",
        "\ud83d",
        "\\u00",
        "é",
        ":",
        ",",
        "9" * 30,
    ]
)


@given(st.lists(st.tuples(st.integers(0, len(_SHIPPED)), st.integers(0, 12), _EDITS), min_size=1, max_size=6))
def test_whatever_is_mistyped_is_told_in_faults_with_places_in_the_file(edits: list[tuple[int, int, str]]) -> None:
    text = _SHIPPED
    for start, length, new in edits:
        text = text[:start] + new + text[start + length :]
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    linted = lint_text(text, env={})
    assert (linted.config is None) is bool(linted.errors)
    for found in linted.faults:
        assert str(found)
        assert found.line <= len(lines)
        assert found.column <= (len(lines[found.line - 1]) + 1 if found.line else 0)


_SLIPS = [(number, line) for number, line in enumerate(_SHIPPED.splitlines(), 1) if line and not line.startswith("#")]


@pytest.mark.parametrize(("number", "line"), _SLIPS, ids=[line.partition("=")[0] for _, line in _SLIPS])
def test_every_slip_in_a_key_of_the_shipped_file_is_found_on_its_line_with_the_key_that_was_meant(
    number: int, line: str
) -> None:
    key = line.partition("=")[0]
    last = key.rindex(".") + 1
    slips = {
        "deleted": key[: last + 1] + key[last + 2 :],
        "doubled": key[: last + 1] + key[last:],
        "swapped": key[:last] + key[last + 1] + key[last] + key[last + 2 :],
    }
    for slip in slips.values():
        text = _SHIPPED.replace(f"\n{line}\n", f"\n{slip}{line[len(key) :]}\n")
        found = [fault for fault in lint_text(text).errors if fault.line == number]
        if len(key) - last > 2:
            assert [(fault.message, fault.hint) for fault in found][:1] == [
                (f"unknown key '{slip}'", f"did you mean '{key}'?")
            ]
        else:
            assert found
