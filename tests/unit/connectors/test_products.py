"""What becomes of a source or sink by what real brokers say on connecting: it goes on, or is refused with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest
from structlog.testing import capture_logs

from engine.connectors.amqp import performatives
from engine.connectors.amqp.codec.encoding import encode
from engine.connectors.amqp.codec.sections import DATA, Header, Properties, Sections, encode_sections
from engine.connectors.amqp.codec.values import Described, UByte, ULong
from engine.connectors.amqp.frames import SASL, SASL_HEADER, frame
from engine.connectors.amqp.performatives import Code, Terminus
from engine.connectors.base import NotConnectedError, Outgoing
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.features import Feature
from engine.connectors.jms import JmsConfig
from engine.connectors.products import product_of
from engine.connectors.stomp.session import StompSession
from engine.connectors.system import connector
from engine.errors import HardFailureError
from engine.message import Message
from routes.config import loads
from tests.unit.connectors.broker_frames import (
    ARTEMIS,
    BAD_CONNECT,
    BROKER_J,
    CLASSIC,
    OPENMQ,
    OTHER,
    RABBITMQ,
    RABBITMQ_4,
    ScriptedBroker,
    amqp,
    attach_of,
    attached,
    source_of,
    stomp,
    symbols,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.connectors.base import Sink, Source
    from routes.model import Config


class MakeBroker(Protocol):
    """Starts a broker."""

    def __call__(self, script: bytes, attach: bytes = b"") -> ScriptedBroker: ...


@pytest.fixture
def broker() -> Iterator[MakeBroker]:
    made: list[ScriptedBroker] = []

    def make(script: bytes, attach: bytes = b"") -> ScriptedBroker:
        made.append(ScriptedBroker(script, attach))
        return made[-1]

    yield make
    for each in made:
        each.close()


def configured(system: str, port: int, *settings: str) -> Config:
    fixed = (
        "bridge.id=b",
        "routes.a.in.include=TRUE",
        f"source.s.type={system}",
        f"source.s.url={system}://127.0.0.1:{port}",
    )
    target = () if any(each.startswith("sink.") for each in settings) else ("routes.a.out.topic=out",)
    kept = () if any("destinations" in each for each in settings) else ("source.s.destinations=queue:a",)
    return loads("\n".join((*fixed, *target, *kept, *settings)))


def source(system: str, port: int, *settings: str) -> Source:
    config = configured(system, port, *(f"source.s.{each}" for each in settings))
    return connector(config.sources[0].type).make_source(SystemEndpoint.of(config, config.sources[0]), 1)


def sink(system: str, port: int, target: str) -> Sink:
    url = f"sink.o.url={system}://127.0.0.1:{port}"
    config = configured(system, port, f"sink.o.type={system}", url, f"routes.a.out.topic=o:{target}")
    return connector(config.sinks[0].type).make_sink(SystemEndpoint.of(config, config.sinks[0]), 1)


@pytest.mark.parametrize(
    ("name", "settings", "refusal"),
    [
        (ARTEMIS, ("destinations=topic:a", "subscription=x", "selector=b='c'"), None),
        (CLASSIC, ("destinations=topic:a", "subscription=x", "selector=b='c'"), None),
        (RABBITMQ, ("destinations=topic:a, queue:a",), None),
        (RABBITMQ, ("destinations=topic:a", "subscription=x"), None),
        (OPENMQ, ("destinations=topic:a", "subscription=x", "selector=b='c'"), None),
        (
            RABBITMQ,
            ("destinations=queue:a", "selector=b='c'"),
            "a selector (b='c'), which RabbitMQ/3.10.8 does not honour",
        ),
        (RABBITMQ_4, ("destinations=topic:a", "subscription=x"), None),
        (RABBITMQ_4, ("destinations=queue:a", "selector=b='c'"), "which RabbitMQ/4.0.5 does not honour"),
        (OTHER, ("destinations=topic:a, queue:a",), None),
        (OTHER, ("destinations=topic:a", "subscription=x"), "the bridge does not know this broker"),
        (OTHER, ("destinations=queue:a", "selector=b='c'"), "the bridge does not know this broker"),
    ],
)
def test_over_stomp_the_server_header_tells_what_is_honoured(
    broker: MakeBroker, name: str, settings: Sequence[str], refusal: str | None
) -> None:
    own = source("stomp", broker(stomp(name)).port, *settings)
    if refusal is None:
        own.connect()
    else:
        with pytest.raises(HardFailureError) as raised:
            own.connect()
        assert refusal in str(raised.value)
        assert str(raised.value).startswith("source.s asks for ")
        assert "Remove source.s." in str(raised.value)
    own.close()


@pytest.mark.parametrize(
    ("system", "script"), [("stomp", stomp(OTHER)), ("amqp", amqp(OTHER)), ("amqp", amqp(ARTEMIS))]
)
def test_the_key_broker_overrides_what_the_broker_says_of_itself(
    broker: MakeBroker, system: str, script: bytes
) -> None:
    own = source(system, broker(script).port, "broker=rabbitmq", "destinations=queue:a", "selector=b='c'")
    with pytest.raises(HardFailureError, match="it sends every message, also those that the selector leaves out"):
        own.connect()
    own.close()


@pytest.mark.parametrize("beats", ["x,0", "0", "0,x", "-1,0", "9" * 5000 + ",0", "\u0663,0"])
def test_a_heart_beat_that_is_no_pair_of_numbers_is_a_lost_connection(broker: MakeBroker, beats: str) -> None:
    script = stomp(OTHER).replace(b"heart-beat:0,0", f"heart-beat:{beats}".encode())
    own = source("stomp", broker(script).port, "destinations=queue:a")
    with pytest.raises(NotConnectedError, match="heart-beat that is not a pair of numbers"):
        own.connect()
    own.close()


def test_a_heart_beat_of_any_length_is_taken(broker: MakeBroker) -> None:
    script = stomp(OTHER).replace(b"heart-beat:0,0", b"heart-beat:" + b"9" * 19 + b",0")
    own = source("stomp", broker(script).port, "destinations=queue:a")
    own.connect()
    own.close()


SELECTOR = "b='c'"


@pytest.mark.parametrize(
    ("name", "settings", "attach", "refusal"),
    [
        (ARTEMIS, ("topic:a", SELECTOR, "x"), attached("x.a", ["topic"], 2, SELECTOR), None),
        (CLASSIC, ("queue:a", SELECTOR, ""), attached("queue:a#1", ["queue"], 0, SELECTOR), None),
        (CLASSIC, ("topic:a", SELECTOR, "x"), attached("x.a", ["topic"], 2, SELECTOR), None),
        (CLASSIC, ("topic:topic://a", "", "x"), attached("x.topic://a", ["topic"], 2), None),
        (RABBITMQ, ("queue:a", "", ""), attached("queue:a#1", ["queue"]), None),
        # It echoes the filter, and sends everything.
        (
            RABBITMQ,
            ("queue:a", SELECTOR, ""),
            attached("queue:a#1", ["queue"], 0, SELECTOR),
            "which RabbitMQ 3.10.8 does",
        ),
        # Its queue for a topic outlives the connection, and the next connection gets another one.
        (
            RABBITMQ,
            ("topic:a", "", ""),
            attached("topic:a#1", ["topic"]),
            "leaves a queue behind that fills without end",
        ),
        (RABBITMQ, ("topic:a", "", "x"), attached("x.a", ["topic"], 2), "asks for messages of a topic (topic:a)"),
        (RABBITMQ_4, ("queue:a", "", ""), attached("queue:a#1", ["queue"]), None),
        (
            RABBITMQ_4,
            ("queue:a", SELECTOR, ""),
            attached("queue:a#1", ["queue"], 0, SELECTOR),
            "which RabbitMQ 4.0.5 does",
        ),
        (RABBITMQ_4, ("topic:a", "", "x"), attached("x.a", ["topic"], 2), "it sends what is in queues alone"),
        (BROKER_J, ("queue:a", SELECTOR, ""), attached("queue:a#1", ["queue"], 0, SELECTOR), None),
        (BROKER_J, ("topic:t/a", "", ""), attached("topic:t/a#1", ["topic"]), None),
        (BROKER_J, ("topic:a", SELECTOR, "x"), attached("x.a", ["topic"], 2, SELECTOR), None),
        (BROKER_J, ("topic:a", "", ""), attached("topic:a#1", ["queue"]), "its attach does not call it a topic"),
        (BROKER_J, ("topic:a", "", "x"), attached("x.a", ["topic"], 0), "the source is not durable"),
        (OTHER, ("queue:a", SELECTOR, ""), attached("queue:a#1", ["queue"], 0, SELECTOR), None),
        (OTHER, ("queue:a", SELECTOR, ""), attached("queue:a#1", ["queue"]), "its attach has no filter"),
        (OTHER, ("topic:a", "", ""), attached("topic:a#1", ["topic"]), "the bridge does not know this broker"),
    ],
)
def test_over_amqp_open_and_attach_tell_what_is_honoured(
    broker: MakeBroker, name: str, settings: tuple[str, str, str], attach: bytes, refusal: str | None
) -> None:
    keys = zip(("destinations", "selector", "subscription"), settings, strict=True)
    own = source("amqp", broker(amqp(name), attach).port, *(f"{key}={value}" for key, value in keys if value))
    if refusal is None:
        own.connect()
    else:
        with pytest.raises(HardFailureError, match=r"source\.s asks for ") as raised:
            own.connect()
        assert refusal in str(raised.value)
    own.close()


@pytest.mark.parametrize(
    ("system", "script", "refusal"),
    [
        ("stomp", stomp(ARTEMIS), None),
        ("stomp", stomp(CLASSIC), None),
        ("stomp", stomp(RABBITMQ), None),
        ("amqp", amqp(ARTEMIS), None),
        ("amqp", amqp(CLASSIC), None),
        ("amqp", amqp(RABBITMQ), None),
        ("amqp", amqp(RABBITMQ_4), None),
        ("amqp", amqp(BROKER_J), None),
        (
            "amqp",
            amqp(OTHER),
            "topic/a of route 'a'), which Other 1 does not honour over AMQP: the bridge does not know",
        ),
    ],
)
def test_a_sink_to_a_topic_is_refused_where_it_would_land_in_a_queue(
    broker: MakeBroker, system: str, script: bytes, refusal: str | None
) -> None:
    own = sink(system, broker(script).port, "topic/a")
    if refusal is None:
        own.connect()
    else:
        with pytest.raises(HardFailureError, match=r"sink\.o asks for messages to a topic") as raised:
            own.connect()
        assert refusal in str(raised.value)
    own.close()


def test_a_topic_that_a_template_makes_is_refused_for_its_message(broker: MakeBroker) -> None:
    own = sink("amqp", broker(amqp(OTHER)).port, "${msg.header.to}")
    own.connect()
    own.send([Outgoing(1, Message(b"x"), "topic/a", "1")])
    (outcome,) = own.outcomes(0)
    assert outcome.refusal == (
        "Other 1 does not honour messages to a topic over AMQP: the bridge does not know this broker, and nothing in "
        "its answer tells"
    )
    own.close()


@pytest.mark.parametrize(
    ("name", "destination", "sent"),
    [
        (ARTEMIS, "queue:a", "a"),
        (ARTEMIS, "topic:a", "a"),
        (CLASSIC, "queue:a", "queue://a"),
        (CLASSIC, "topic:a", "topic://a"),
        (CLASSIC, "topic:topic://a", "topic://a"),
        (RABBITMQ, "queue:a", "a"),
        (RABBITMQ, "queue:/amq/queue/a", "/amq/queue/a"),
        (BROKER_J, "topic:own/a", "own/a"),
        (BROKER_J, "topic:a", "amq.topic/a"),
        (BROKER_J, "queue:a", "a"),
    ],
)
def test_a_source_spells_an_address_as_the_broker_does(
    broker: MakeBroker, name: str, destination: str, sent: str
) -> None:
    other = broker(amqp(name), attached(f"{destination}#1", [destination.partition(":")[0]]))
    own = source("amqp", other.port, f"destinations={destination}")
    own.connect()
    own.close()
    assert source_of(other.heard)[0] == sent


@pytest.mark.parametrize(
    ("name", "address", "sent"),
    [
        (ARTEMIS, "topic/a", "a"),
        (CLASSIC, "queue/a", "queue://a"),
        (CLASSIC, "topic/a", "topic://a"),
        (RABBITMQ, "queue/a", "a"),
        (RABBITMQ, "topic/a", "/topic/a"),
        (BROKER_J, "topic/a", "amq.topic/a"),
    ],
)
def test_a_sink_spells_an_address_as_the_broker_does(broker: MakeBroker, name: str, address: str, sent: str) -> None:
    other = broker(amqp(name))
    own = sink("amqp", other.port, address)
    own.connect()
    own.send([Outgoing(1, Message(b"x"), address, "1")])
    own.close()
    kind = address.partition("/")[0]
    assert Terminus(sent, kind, is_declared=name == RABBITMQ and kind == "queue").target() == attach_of(other.heard)[6]


def test_a_queue_at_rabbitmq_is_declared_durable(broker: MakeBroker) -> None:
    other = broker(amqp(RABBITMQ), attached("queue:a#1", ["queue"]))
    own = source("amqp", other.port, "destinations=queue:a")
    own.connect()
    own.close()
    assert source_of(other.heard)[1] == 2


def test_doctor_is_told_too(broker: MakeBroker) -> None:
    config = configured("stomp", broker(stomp(RABBITMQ)).port, "source.s.selector=b='c'")
    with pytest.raises(HardFailureError, match=r"source\.s asks for a selector"):
        connector(config.sources[0].type).check_connection(SystemEndpoint.of(config, config.sources[0]), "me")


def test_doctor_reminds_of_the_transformer_of_a_sinks_broker(broker: MakeBroker) -> None:
    other = broker(amqp(CLASSIC))
    settings = ("sink.o.type=amqp", f"sink.o.url=amqp://127.0.0.1:{other.port}", "routes.a.out.topic=o:queue/a")
    config = configured("amqp", 1, *settings)
    found = connector(config.sinks[0].type).check_connection(SystemEndpoint.of(config, config.sinks[0]), "me")
    assert found == (
        f"amqp://127.0.0.1:{other.port} takes the login; its OpenWire clients get encoded AMQP messages unless its "
        "connector has transport.transformer=jms"
    )


def offering(*mechanisms: str) -> bytes:
    """A broker that offers these mechanisms and says no more."""
    return SASL_HEADER + frame(0, encode(Described(ULong(Code.SASL_MECHANISMS), [symbols(*mechanisms)])), SASL)


@pytest.mark.parametrize(
    ("offered", "login", "why"),
    [
        (
            ("GSSAPI", "ANONYMOUS"),
            ("username=u", "password=p"),
            "the broker offers GSSAPI, ANONYMOUS; the bridge logs in by SCRAM-SHA-512, SCRAM-SHA-256, SCRAM-SHA-1, "
            "PLAIN, CRAM-MD5, so allow one of these at the broker",
        ),
        (
            ("CRAM-MD5", "SCRAM-SHA-1", "SCRAM-SHA-256"),
            (),
            "the broker offers no login without a user name, only CRAM-MD5, SCRAM-SHA-1, SCRAM-SHA-256; set username "
            "and password",
        ),
        (
            ("EXTERNAL", "XOAUTH2"),
            (),
            "the broker offers EXTERNAL, XOAUTH2, so it wants access tokens; set source.s.oauthbearer.client.id",
        ),
        (
            ("OAUTHBEARER",),
            ("username=u", "password=p"),
            "the broker offers OAUTHBEARER, so it wants access tokens; set source.s.oauthbearer.client.id",
        ),
    ],
)
def test_a_login_that_the_broker_does_not_offer_says_what_to_do(
    broker: MakeBroker, offered: Sequence[str], login: Sequence[str], why: str
) -> None:
    own = source("amqp", broker(offering(*offered)).port, *login)
    with pytest.raises(NotConnectedError) as raised:
        own.connect()
    assert (str(raised.value), raised.value.back_off_seconds) == (why, 30)
    own.close()


def test_a_broker_that_takes_a_login_by_scram_without_a_proof_is_not_believed(broker: MakeBroker) -> None:
    welcome = frame(0, encode(Described(ULong(Code.SASL_OUTCOME), [UByte(0)])), SASL)
    own = source("amqp", broker(offering("SCRAM-SHA-256") + welcome).port, "username=u", "password=p")
    with pytest.raises(
        NotConnectedError, match="the broker has not proved by SCRAM-SHA-256 that it knows the password"
    ):
        own.connect()
    own.close()


def test_the_first_line_of_an_errors_body_is_shown(broker: MakeBroker) -> None:
    own = source("stomp", broker(BAD_CONNECT).port)
    with pytest.raises(NotConnectedError) as raised:
        own.connect()
    assert str(raised.value) == (
        "the broker says: Bad CONNECT: Virtual host '127.0.0.1' access denied; "
        "the key virtual-host names another one, as virtual-host=/"
    )
    own.close()


def test_the_class_of_an_exception_is_not_shown(broker: MakeBroker) -> None:
    said = (
        b"ERROR\nmessage:CONNECT\\c [C4060]\\c Login failed\\c  user=guest\ncontent-length:103\n\n"
        b"com.sun.messaging.jms.JMSSecurityException: [C4060]: Login failed:  user=guest\n\tat com.sun.messaging.jmq\0"
    )
    own = source("stomp", broker(said.replace(b"103", str(len(said.split(b"\n\n")[1]) - 1).encode())).port)
    with pytest.raises(NotConnectedError, match=r"^the broker says: CONNECT: \[C4060\]: Login failed: user=guest$"):
        own.connect()
    own.close()


def test_doctor_is_told_the_first_line_of_an_errors_body(broker: MakeBroker) -> None:
    config = configured("stomp", broker(BAD_CONNECT).port)
    with pytest.raises(NotConnectedError, match="access denied; the key virtual-host names another one"):
        connector(config.sources[0].type).check_connection(SystemEndpoint.of(config, config.sources[0]), "me")


@pytest.mark.parametrize(
    ("server", "lacking"), [(CLASSIC, "; its frames have no JMSXGroupID, JMSXGroupSeq"), (RABBITMQ, "")]
)
def test_doctor_says_which_fields_a_brokers_frames_lack(broker: MakeBroker, server: str, lacking: str) -> None:
    other = broker(stomp(server))
    config = configured("stomp", other.port)
    found = connector(config.sources[0].type).check_connection(SystemEndpoint.of(config, config.sources[0]), "me")
    assert found == f"stomp://127.0.0.1:{other.port} takes the login{lacking}"


@pytest.mark.parametrize(("settings", "host"), [((), "127.0.0.1"), (("virtual-host=/",), "/")])
def test_the_virtual_host_goes_to_the_broker_over_stomp(broker: MakeBroker, settings: Sequence[str], host: str) -> None:
    other = broker(stomp(RABBITMQ))
    own = source("stomp", other.port, *settings)
    own.connect()
    own.close()
    assert f"\nhost:{host}\n".encode() in other.heard


@pytest.mark.parametrize(("settings", "host"), [((), "127.0.0.1"), (("virtual-host=vhost:/",), "vhost:/")])
def test_the_virtual_host_goes_to_the_broker_over_amqp(broker: MakeBroker, settings: Sequence[str], host: str) -> None:
    other = broker(amqp(RABBITMQ), attached("queue:a#1", ["queue"]))
    own = source("amqp", other.port, *settings)
    own.connect()
    own.close()
    # In the login and in open.
    assert other.heard.count(encode(host)) == 2


def test_what_a_peer_says_is_one_printable_line(broker: MakeBroker) -> None:
    said = b"ERROR\nmessage:no\n\n" + "\x1b[31mred\u009b\tand".encode() + b"x" * 5000 + b"\nsecond\0"
    own = source("stomp", broker(said).port)
    with pytest.raises(NotConnectedError) as raised:
        own.connect()
    text = str(raised.value)
    assert text.startswith("the broker says: no: [31mred andx")
    assert text.isprintable()
    assert len(text) < 600
    own.close()


@pytest.mark.parametrize("name", ["", "Coil/1.0"])
def test_of_an_unknown_broker_over_stomp_only_what_stomp_has_is_taken_for_granted(name: str) -> None:
    (broker,) = configured("stomp", 1).sources
    assert isinstance(broker, JmsConfig)
    session = StompSession(broker, "s", "stomp://127.0.0.1:1", "c", 0)
    session.product = product_of(name)
    assert session.product.title == (name or "a broker that does not say its name")
    assert list(session.lacks) == [Feature.SUBSCRIPTION, Feature.SELECTOR, Feature.POSITIONS]


def transferred(number: int, *, first: bool) -> bytes:
    """A message without an id, as RabbitMQ delivers it first and again."""
    header = Header(durable=True, first_acquirer=first)
    encoded = encode_sections(Sections(header=header, body=DATA, content=b"same"))
    return frame(0, performatives.transfer(0, number, b"t%d" % number, 0, more=False) + encoded)


def test_a_message_of_a_pattern_has_the_address_that_it_names_or_the_log_says_that_it_names_none(
    broker: MakeBroker,
) -> None:
    named = encode_sections(Sections(properties=Properties(to="orders.north"), body=DATA, content=b"1"))
    unnamed = encode_sections(Sections(body=DATA, content=b"2"))
    transfers = b"".join(
        frame(0, performatives.transfer(0, number, b"t%d" % number, 0, more=False) + encoded)
        for number, encoded in enumerate((named, unnamed, unnamed))
    )
    attach = attached("topic:orders.##1", ["topic"]) + transfers
    own = source("amqp", broker(amqp(ARTEMIS), attach).port, "destinations=topic:orders.#")
    own.connect()
    with capture_logs() as logs:
        found = [delivery for _ in range(3) if (delivery := own.receive(5)) is not None]
    own.close()
    assert [each.message.headers["JMSDestination"] for each in found] == ["topic:orders.north", *["topic:orders.#"] * 2]
    (warned,) = logs
    assert (warned["log_level"], warned["destination"]) == ("warning", "topic:orders.#")


@pytest.mark.parametrize(("settings", "equal"), [((), False), (("identity=content",), True)])
def test_a_message_without_an_id_may_be_recognised_by_its_content(
    broker: MakeBroker, settings: Sequence[str], equal: bool
) -> None:
    attach = attached("queue:a#1", ["queue"]) + transferred(0, first=True) + transferred(1, first=False)
    own = source("amqp", broker(amqp(RABBITMQ), attach).port, "destinations=queue:a", *settings)
    own.connect()
    found = [delivery for _ in range(2) if (delivery := own.receive(5)) is not None]
    own.close()
    assert len({each.message.headers["JMSMessageID"] for each in found}) == (1 if equal else 2)
    assert [each.has_own_id for each in found] == [equal, equal]
    assert [each.message.headers["JMSRedelivered"] for each in found] == ["false", "true"]
