"""Which broker and which address a destination on the command line means."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cli.destination import BrokerDestination, broker_destination, kafka_topic
from engine.connectors.nats.settings import WireFormat
from engine.errors import UsageError
from routes.config import loads
from routes.model import Config

ROUTE = "bridge.id=b1\nroutes.r.in.include=msg.address==orders\nroutes.r.out.topic=orders\n"
BROKERS = """\
source.jms.type=stomp
source.jms.url=stomp://127.0.0.1:1
source.jms.destinations=queue:orders
source.other.type=stomp
source.other.url=stomp://127.0.0.1:2
source.other.destinations=queue:payments, topic:prices
source.nats-in.type=nats
source.nats-in.url=nats://127.0.0.1:3
source.nats-in.destinations=in.*.eu, prices.>
source.both.type=nats
source.both.url=nats://127.0.0.1:4
source.both.destinations=x
sink.both.type=nats
sink.both.url=nats://127.0.0.1:5
sink.both.format=json
sink.both.stream=true
sink.archive.type=stomp
sink.archive.url=stomp://127.0.0.1:6
"""


def config(brokers: str = BROKERS) -> Config:
    return loads(ROUTE + brokers)


def at(destination: str, *, to_send: bool = True, brokers: str = BROKERS) -> BrokerDestination:
    return broker_destination(config(brokers), destination, None, None, to_send=to_send)


@pytest.mark.parametrize("text", ["orders", "queue:", ":orders", "kafka:"])
def test_a_destination_has_a_scheme_and_a_name(text: str) -> None:
    with pytest.raises(
        UsageError, match=r"expected kafka:TOPIC, queue:NAME, topic:NAME, nats:SUBJECT, dropbox:queue/NAME, or NAME:"
    ):
        kafka_topic(text)


def test_only_kafka_is_no_broker() -> None:
    assert kafka_topic("kafka:orders") == "orders"
    assert kafka_topic("nats:kafka") is None


@pytest.mark.parametrize(
    ("destination", "address", "url"),
    [
        ("queue:orders", "queue:orders", "stomp://127.0.0.1:1"),
        ("queue:payments", "queue:payments", "stomp://127.0.0.1:2"),
        ("stomp:queue/payments", "queue:payments", "stomp://127.0.0.1:2"),
        ("queue:a:b", "queue:a:b", "stomp://127.0.0.1:1"),
        ("topic:nobody", "topic:nobody", "stomp://127.0.0.1:1"),
        ("stomp:topic/nobody", "topic:nobody", "stomp://127.0.0.1:6"),
        ("archive:queue/old", "queue:old", "stomp://127.0.0.1:6"),
        ("other:/topic/x", "topic:x", "stomp://127.0.0.1:2"),
        ("nats:in.de.eu", "in.de.eu", "nats://127.0.0.1:3"),
        ("nats:prices.a.b", "prices.a.b", "nats://127.0.0.1:3"),
        ("nats:prices", "prices", "nats://127.0.0.1:5"),
        ("nats:topic:orders", "orders", "nats://127.0.0.1:5"),
        ("nats-in:orders", "orders", "nats://127.0.0.1:3"),
        ("both:orders", "orders", "nats://127.0.0.1:5"),
    ],
)
def test_a_destination_leads_to_the_broker_it_names_or_that_reads_it_or_the_first(
    destination: str, address: str, url: str
) -> None:
    place = at(destination)
    assert (place.address, place.url, place.configured) == (address, url, True)


def test_a_name_of_both_is_the_sink_to_send_and_the_source_to_receive() -> None:
    assert at("both:orders").url == "nats://127.0.0.1:5"
    assert at("both:orders", to_send=False).url == "nats://127.0.0.1:4"


def test_without_any_broker_it_is_where_the_embedded_one_would_be() -> None:
    for destination, url in (("queue:a", "stomp://127.0.0.1:61613"), ("nats:a", "nats://127.0.0.1:4222")):
        place = at(destination, brokers="")
        assert (place.url, place.configured) == (url, False)


AMQP = "source.plant.type=amqp\nsource.plant.url=amqp://127.0.0.1:7\nsource.plant.destinations=queue:plant\n"


@pytest.mark.parametrize(
    ("destination", "brokers", "url"),
    [
        ("amqp:queue/a", "", "amqp://127.0.0.1:5672"),
        ("amqp:queue/a", AMQP, "amqp://127.0.0.1:7"),
        ("queue:plant", BROKERS + AMQP, "amqp://127.0.0.1:7"),
        ("queue:orders", BROKERS + AMQP, "stomp://127.0.0.1:1"),
        ("queue:any", AMQP, "amqp://127.0.0.1:7"),
        ("queue:any", AMQP + BROKERS, "amqp://127.0.0.1:7"),
    ],
)
def test_a_queue_is_reached_over_the_protocol_of_who_reads_it(destination: str, brokers: str, url: str) -> None:
    assert at(destination, brokers=brokers).url == url


def test_the_url_says_which_protocol_a_queue_is_reached_by() -> None:
    place = broker_destination(config(), "queue:a", "amqps://127.0.0.1:9", None, to_send=True)
    assert (place.system, place.address) == ("amqp", "queue:a")


@pytest.mark.parametrize("subject", ["a.*", "a.>", "*", ">", "*.a.>"])
def test_wildcards_are_for_receiving(subject: str) -> None:
    assert at(f"nats:{subject}", to_send=False).address == subject
    with pytest.raises(UsageError, match="expected a subject without wildcards"):
        at(f"nats:{subject}")


@pytest.mark.parametrize(
    ("destination", "said"),
    [
        ("nats:a..b", "'nats:a..b' is not a destination: expected a subject, as in nats:orders.eu"),
        ("nats:a.>.b", "expected a subject, as in"),
        ("nats:a b", "expected a subject, as in"),
        ("stomp:orders", "'stomp:orders' is not a destination: expected queue/NAME or topic/NAME"),
        ("archive:orders", "expected queue/NAME or topic/NAME"),
        ("jsm:orders", "(NAME is a source or sink: jms, other, nats-in, both, archive)"),
    ],
)
def test_what_is_no_destination_is_told_with_what_would_be_one(destination: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        at(destination, to_send=False)
    assert said in str(caught.value)


def test_another_kafka_cluster_is_written_by_its_sink_and_not_read() -> None:
    lines = [
        "bridge.id=b",
        "source.other.type=kafka",
        "source.other.destinations=t",
        "source.other.bootstrap.servers=other:9092",
        "sink.far.type=kafka",
        "sink.far.bootstrap.servers=far:9092",
        "routes.r.in.include=TRUE",
        "routes.r.out.topic=far:orders",
    ]
    config = loads("\n".join(lines))
    found = broker_destination(config, "far:orders", None, None, to_send=True)
    assert (found.address, found.url) == ("orders", "kafka://far:9092")
    with pytest.raises(UsageError, match="source 'other' reads another Kafka cluster"):
        broker_destination(config, "other:t", None, None, to_send=False)


def test_a_given_url_is_taken_instead_of_what_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JMS_BRIDGE_PASSWORD", "secret")
    place = broker_destination(config(), "both:orders", "tls://127.0.0.1:9", "me", to_send=True)
    assert (place.url, place.broker.username, place.broker.password) == ("tls://127.0.0.1:9", "me", "secret")
    assert place.sink("test").format is WireFormat.HEADERS


@pytest.mark.parametrize(
    ("destination", "url", "expected"),
    [
        ("queue:a", "nats://127.0.0.1:9", "stomp://HOST:PORT or stomp+ssl://HOST:PORT"),
        ("nats:a", "stomp://127.0.0.1:9", "nats://HOST:PORT or tls://HOST:PORT"),
        ("nats:a", "nats://127.0.0.1", "nats://HOST:PORT"),
    ],
)
def test_a_given_url_fits_the_destination(destination: str, url: str, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        broker_destination(config(), destination, url, None, to_send=True)
    assert str(caught.value).startswith(f"--url {url}: expected {expected}")


@pytest.mark.parametrize(
    ("destination", "url"),
    [
        ("queue:a", "stomp://u:secret@127.0.0.1:1"),
        ("queue:a", "amqp://secret@127.0.0.1:1"),
        ("nats:a", "nats://u:se/secret@127.0.0.1:1"),
        ("nats:a", "nats://u:secret@secret@127.0.0.1:1"),
        ("nats:a", "u:secret@127.0.0.1"),
    ],
)
def test_a_login_in_a_url_is_told_and_not_repeated(destination: str, url: str) -> None:
    with pytest.raises(UsageError) as caught:
        broker_destination(config(), destination, url, None, to_send=True)
    assert "secret" not in str(caught.value)
    assert "without a login; give the user by --username, the password by the variable JMS_BRIDGE_PASSWORD" in str(
        caught.value
    )


@pytest.mark.parametrize("url", ["dropbox://u:secret@h/srv", "stomp://127.0.0.1:1?password=secret"])
def test_what_may_be_a_login_is_not_repeated(url: str) -> None:
    with pytest.raises(UsageError, match="--url: expected ") as caught:
        broker_destination(config(), "dropbox:a" if url.startswith("dropbox") else "queue:a", url, None, to_send=True)
    assert "secret" not in str(caught.value)


def test_a_url_is_no_destination_and_its_login_is_not_repeated() -> None:
    with pytest.raises(UsageError, match="a URL with a login is not a destination: expected kafka:TOPIC") as caught:
        kafka_topic("stomp://u:secret@127.0.0.1:1")
    assert "secret" not in str(caught.value)


def test_a_sink_for_one_command_is_as_the_configured_one_unless_told_otherwise() -> None:
    own = at("both:orders").sink("me")
    assert (own.format, own.stream, own.client_id, own.workers) == (WireFormat.JSON, True, "me", 1)
    own = at("both:orders").sink("me", format=WireFormat.RAW, stream=False)
    assert (own.format, own.stream) == (WireFormat.RAW, False)


def test_a_source_for_one_command_shares_no_subscription() -> None:
    own = at("nats-in:in.a.eu", to_send=False).source("me", stream="S")
    assert (own.destinations, own.stream, own.consumer, own.client_id) == (("in.a.eu",), "S", "me", "me")
    assert not {"selector", "subscription"} & vars(own).keys()


@pytest.mark.parametrize(
    ("destination", "text", "address"),
    [
        ("queue:a", "queue:replies", "queue:replies"),
        ("archive:queue/a", "topic/replies", "topic:replies"),
        ("archive:queue/a", "archive:topic/replies", "topic:replies"),
        ("queue:a", "stomp:queue/replies", "queue:replies"),
        ("nats:a", "replies.a", "replies.a"),
        ("nats:a", "nats:replies", "replies"),
        ("both:a", "topic:replies", "replies"),
    ],
)
def test_replies_go_to_an_address_of_the_same_broker(destination: str, text: str, address: str) -> None:
    assert at(destination).reply_address(text) == address


def test_a_place_for_replies_has_to_be_one_of_that_broker() -> None:
    with pytest.raises(UsageError, match="'replies' is not a destination: expected queue/NAME"):
        at("queue:a").reply_address("replies")


def test_a_password_on_the_command_line_replaces_the_configured_login(tmp_path: Path) -> None:
    place = broker_destination(config(BROKERS + "sink.both.token=t\n"), "both:a", None, "me", to_send=True)
    assert (place.broker.username, place.broker.token) == ("me", None)


DROPBOXES = """\
source.files.type=dropbox
source.files.root=in
source.files.destinations=queue:inbox, topic:prices
sink.archive.type=dropbox
sink.archive.root=/srv/archive
"""


@pytest.mark.parametrize(
    ("destination", "address", "root"),
    [
        ("dropbox:queue/inbox", "queue:inbox", "in"),
        ("dropbox:inbox", "queue:inbox", "in"),
        ("dropbox:topic/prices", "topic:prices", "in"),
        ("dropbox:topic:other.eu", "topic:other.eu", "/srv/archive"),
        ("archive:/queue/old", "queue:old", "/srv/archive"),
        ("files:queue:new", "queue:new", "in"),
    ],
)
def test_a_dropbox_is_that_of_a_folder(destination: str, address: str, root: str) -> None:
    place = at(destination, brokers=DROPBOXES)
    assert (place.address, place.url, place.configured) == (address, f"dropbox://{Path.cwd() / root}", True)


def test_a_folder_may_be_named_on_the_command_line() -> None:
    place = broker_destination(config(""), "dropbox:a", "dropbox:///srv/drop box", None, to_send=True)
    assert (place.url, place.sink("who").root) == ("dropbox:///srv/drop box", Path("/srv/drop box"))
    assert place.source("who").subscription is None


@pytest.mark.parametrize(
    ("destination", "url", "username", "said"),
    [
        (
            "dropbox:../a",
            None,
            None,
            "'dropbox:../a' is not a destination: expected queue/NAME, topic/NAME or the NAME of",
        ),
        ("dropbox:a", "dropbox://host:1", None, "--url dropbox://host:1: expected dropbox:///PATH, the folder of the"),
        ("dropbox:a", "/srv", None, "--url /srv: expected dropbox:///PATH"),
        ("dropbox:a", None, "u", "--username is for brokers; dropbox:a is a folder, which needs no login"),
    ],
)
def test_what_is_no_dropbox_is_reported(destination: str, url: str | None, username: str | None, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        broker_destination(config(DROPBOXES), destination, url, username, to_send=True)
    assert str(raised.value).startswith(said)
