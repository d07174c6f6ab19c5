"""Nothing is in the journal twice, whoever dies between the journal and the acknowledgement."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from engine.connectors.system import connector
from engine.message import Message
from engine.telemetry.status import State
from routes.model import Config
from routes.systems import all_systems
from tests.dropboxes import files
from tests.integration.connectors.harness import Outgoing
from tests.integration.connectors.jms_harness import JmsHarness
from tests.integration.connectors.nats_harness import delivered_again
from tests.integration.connectors.running import SOURCE, bodies, numbered, numbers
from tests.integration.connectors.stomp_harness import amqp as proton
from tests.processes import paused
from tests.topic_records import ordered_producer
from tests.waiting import patience, until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.embedded import EmbeddedKafka
    from tests.integration.connectors.amqp_harness import AmqpHarness
    from tests.integration.connectors.conftest import Configure, Start
    from tests.integration.connectors.dropbox_harness import DropboxHarness
    from tests.integration.connectors.harness import Harness
    from tests.integration.connectors.nats_harness import NatsHarness
    from tests.integration.connectors.proxy import Proxy
    from tests.integration.connectors.running import Running
    from tests.integration.connectors.stomp_harness import StompHarness


Dying = Callable[[Config, int, int, int], subprocess.Popen[bytes]]


@pytest.fixture
def dying() -> Iterator[Dying]:
    """Begins a worker that acknowledges so many messages, and dies with that many in the journal."""
    processes: list[subprocess.Popen[bytes]] = []

    def begin(config: Config, worker: int, done: int, dies: int) -> subprocess.Popen[bytes]:
        arguments = [str(config.path), str(worker), str(done), str(dies)]
        processes.append(subprocess.Popen([sys.executable, "-m", "tests.integration.connectors.dying", *arguments]))
        return processes[-1]

    yield begin
    for process in processes:
        process.kill()
        process.wait()


def dies(process: subprocess.Popen[bytes]) -> None:
    assert process.wait(60) == -signal.SIGKILL


def all_once(config: Config, count: int) -> None:
    found = Counter(numbers(config.bootstrap_servers, config.journal.topic))
    assert {n: times for n, times in found.items() if times > 1} == {}, "in the journal more than once"
    assert set(found) == set(range(count))


@pytest.fixture
def before_acknowledging(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Something happens once, when the journal has messages and the broker is about to hear of it."""

    def prepare(happens: Callable[[], None]) -> None:
        left = [happens]

        def wrapped(make: Callable[..., Any]) -> Callable[..., Any]:
            def made(*arguments: Any) -> Any:
                source = make(*arguments)
                acknowledge = source.acknowledge

                def late(tokens: Sequence[object]) -> None:
                    if left:
                        left.pop()()
                    acknowledge(tokens)

                source.acknowledge = late
                return source

            return made

        for system in map(connector, all_systems()):
            monkeypatch.setattr(system, "make_source", wrapped(system.make_source))

    return prepare


@pytest.mark.parametrize("acknowledged", [pytest.param(0, marks=pytest.mark.kills), 100])
def test_a_source_that_is_killed_before_it_acknowledges(
    harness: Harness,
    configured: Configure,
    start: Start,
    queue: str,
    kafka: EmbeddedKafka,
    dying: Dying,
    acknowledged: int,
) -> None:
    config = configured(harness.settings(queue))
    harness.send(queue, numbered(300))
    dies(dying(config, 1, acknowledged, 300))
    assert len(numbers(kafka.bootstrap, config.journal.topic)) == 300
    harness.send(queue, numbered(100, begin=300))

    source = start(config)
    until(lambda: harness.waiting(queue) == 0, what="empty")
    source.stop()

    all_once(config, 400)
    duplicates = source.sample("jmsbridge_source_duplicates_total", source=SOURCE)
    if isinstance(harness, JmsHarness):
        # A session acknowledges all that it has received or nothing, so the 100 may be a part of what comes again.
        assert 300 - acknowledged <= duplicates <= 300
    else:
        assert duplicates == 300 - acknowledged
    assert source.count("acknowledged") == 100 + duplicates


@pytest.mark.kills
def test_a_source_that_is_killed_again_and_again(
    harness: Harness, configured: Configure, start: Start, queue: str, dying: Dying
) -> None:
    config = configured(harness.settings(queue))
    harness.send(queue, numbered(400))
    for done in (0, 50, 20):
        dies(dying(config, 1, done, 150))

    source = start(config)
    until(lambda: harness.waiting(queue) == 0, what="empty")
    source.stop()

    all_once(config, 400)


def test_a_connection_that_is_lost_before_acknowledgements_arrive(
    harness: Harness,
    configured: Configure,
    start: Start,
    queue: str,
    proxied: Callable[[int], Proxy],
    before_acknowledging: Callable[[Callable[[], None]], None],
) -> None:
    proxy = proxied(harness.port)
    config = configured(harness.settings(queue, proxy.port))
    harness.send(queue, numbered(300))
    before_acknowledging(proxy.cut)

    source = start(config)
    until(lambda: source.count("reconnects") == 1, what="reconnected")
    until(lambda: harness.waiting(queue) == 0, what="empty")
    source.stop()

    all_once(config, 300)
    assert source.sample("jmsbridge_source_duplicates_total", source=SOURCE) > 0


@pytest.mark.kills
def test_a_broker_that_is_killed_before_it_hears_of_acknowledgements(
    harness: Harness,
    configured: Configure,
    start: Start,
    queue: str,
    before_acknowledging: Callable[[Callable[[], None]], None],
) -> None:
    config = configured(harness.settings(queue))
    harness.send(queue, numbered(300))
    before_acknowledging(harness.kill)

    source = start(config)
    until(lambda: source.status.current.state is State.DEGRADED, what="away")
    harness.start()
    until(lambda: source.status.current.state is State.READY, 60, what="back")
    until(lambda: harness.waiting(queue) == 0, what="empty")
    source.stop()

    all_once(config, 300)
    assert source.sample("jmsbridge_source_duplicates_total", source=SOURCE) > 0


@pytest.mark.parametrize("added", [0, 2])
@pytest.mark.kills
def test_what_one_of_two_workers_had_when_it_was_killed(
    harness: Harness, configured: Configure, start: Start, queue: str, dying: Dying, added: int
) -> None:
    config = configured(harness.settings(queue) | {".workers": "2"})
    harness.create(queue)
    source = start(config)
    until(lambda: source.status.current.state is State.READY)
    if added:
        # The other worker writes to these; the one that is there already has not heard of them.
        add_partitions(config, added)
    other, sent = dying(config, 2, 0, 40), 0
    deadline = time.monotonic() + patience(60)
    while other.poll() is None and time.monotonic() < deadline:
        harness.send(queue, numbered(100, begin=sent))
        sent += 100
        time.sleep(0.1)
    dies(other)

    # Only a process that begins looks for files of one that has died.
    again = start(config, 2)
    until(lambda: harness.waiting(queue) == 0, what="empty")
    source.stop()
    again.stop()

    all_once(config, sent)
    duplicates = [each.sample("jmsbridge_source_duplicates_total", source=SOURCE) for each in (source, again)]
    assert sum(duplicates) >= 40


def add_partitions(config: Config, count: int) -> None:
    topic = config.journal.topic
    admin = AdminClient({"bootstrap.servers": config.bootstrap_servers})
    before = len(admin.list_topics(topic).topics[topic].partitions)
    admin.create_partitions([NewPartitions(topic, before + count)])[topic].result(30)


def told_once(config: Config, source: Running, count: int) -> None:
    source.acknowledges(count)
    source.stop()
    assert source.sample("jmsbridge_source_duplicates_total", source=SOURCE) == 0


def test_cumulative_acknowledgements_leave_out_what_the_journal_has_in_its_turn(
    stomp: StompHarness, configured: Configure, start: Start, queue: str, dying: Dying
) -> None:
    config = configured(stomp.settings(queue) | {".acknowledge": "cumulative"})
    stomp.send(queue, numbered(200))
    dies(dying(config, 1, 50, 120))
    stomp.send(queue, numbered(50, begin=200))

    source = start(config)
    until(lambda: stomp.waiting(queue) == 0, what="empty")
    source.stop()

    all_once(config, 250)


def test_equal_messages_without_ids_of_their_sender_are_all_there(
    stomp: StompHarness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka, dying: Dying
) -> None:
    config = configured(stomp.settings(queue))
    stomp.send(queue, [Outgoing(b"ping")] * 100)
    dies(dying(config, 1, 30, 60))
    stomp.send(queue, [Outgoing(b"ping")] * 50)

    source = start(config)
    until(lambda: stomp.waiting(queue) == 0, what="empty")
    source.stop()

    assert bodies(kafka.bootstrap, config.journal.topic) == [b"ping"] * 150


@pytest.mark.parametrize("copies", [1, 4])
@pytest.mark.parametrize(
    "given", [{"id": "same"}, {"id": "same", "creation_time": 1_700_000_000}, {}], ids=["id", "id and time", "neither"]
)
@pytest.mark.kills
def test_messages_that_an_amqp_sender_calls_the_same_are_lost_by_no_kill(
    amqp: AmqpHarness,
    stomp: StompHarness,
    configured: Configure,
    start: Start,
    queue: str,
    kafka: EmbeddedKafka,
    dying: Dying,
    given: dict[str, Any],
    copies: int,
) -> None:
    message = proton("proton").Message
    texts = [str(n) for n in range(10)] * copies
    config = configured(amqp.settings(queue))
    amqp.create(queue)
    stomp.amqp(queue, [message(body=text, durable=True, **given) for text in texts])
    dies(dying(config, 1, 0, len(texts)))
    stomp.amqp(queue, [message(body=text, durable=True, **given) for text in texts])

    source = start(config)
    until(lambda: amqp.waiting(queue) == 0, what="empty")
    source.stop()

    # Which of them came again, nobody can tell.
    found = Counter(bodies(kafka.bootstrap, config.journal.topic))
    assert set(found) == {text.encode() for text in texts}
    assert min(found.values()) >= 2 * copies


def test_a_message_that_is_there_again_after_a_clean_stop_is_a_new_one(
    dropbox: DropboxHarness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(dropbox.settings(queue))
    dropbox.send(queue, numbered(5))
    told_once(config, start(config), 5)
    box = dropbox.boxes.queue(queue)
    for name in files(box / "processed"):
        (box / "processed" / name).rename(box / "target" / name)

    told_once(config, start(config), 5)

    assert sorted(numbers(kafka.bootstrap, config.journal.topic)) == sorted([*range(5), *range(5)])


def test_what_only_others_journalled_is_passed_over_once(
    stomp: StompHarness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(stomp.settings(queue))
    others = Message(b"x", headers={"JMSMessageID": "ID:1"}, source="other").to_record()
    producer = ordered_producer(kafka.bootstrap)
    for number in range(3000):
        producer.produce(config.journal.topic, others.value, str(number), headers=list(others.headers))
    producer.flush()
    stomp.send(queue, numbered(3))

    told_once(config, start(config), 3)

    assert sum(kept(config, 1).values()) == 3000
    told = start(config)
    until(lambda: told.status.current.state is State.READY)
    told.stop()
    assert sum(kept(config, 1).values()) == 3000


def test_workers_that_are_no_more_are_asked_too(
    stomp: StompHarness, configured: Configure, start: Start, queue: str, dying: Dying
) -> None:
    two = configured(stomp.settings(queue) | {".workers": "2"})
    stomp.send(queue, numbered(100))
    dies(dying(two, 2, 0, 100))
    config = configured(stomp.settings(queue))

    source = start(config)
    until(lambda: stomp.waiting(queue) == 0, what="empty")
    source.stop()

    all_once(config, 100)


def test_a_stream_is_tended_while_the_journal_takes_nothing(
    jetstream: NatsHarness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    small = {"journal.max-message-bytes": "64KiB", "kafka.producer.buffer.memory": "1048576"}
    config = configured(jetstream.settings(queue) | small)
    source = start(config)
    until(lambda: source.status.current.state is State.READY)
    with paused(kafka.pid):
        jetstream.send(queue, numbered(1500, size=2000))
        until(lambda: source.status.current.state is State.DEGRADED, what="full")
        time.sleep(6)  # three times as long as the consumer waits
        assert delivered_again(jetstream, queue) == 0
    source.acknowledges(1500)
    source.stop()

    assert source.count("reconnects") == 0
    all_once(config, 1500)


def kept(config: Config, worker: int) -> dict[int, int]:
    """Where a worker had nothing in doubt any more."""
    group = f"{config.bridge_id}.source.{SOURCE}.{worker}"
    consumer = Consumer({"bootstrap.servers": config.bootstrap_servers, "group.id": group, "log_level": 0})
    try:
        places = [TopicPartition(config.journal.topic, partition) for partition in range(config.journal.partitions)]
        return {place.partition: place.offset for place in consumer.committed(places, timeout=10)}
    finally:
        consumer.close()
