"""The bridge that all tests of this folder share: every system, each with sources, sinks and routes for each file.

No two files use the same address. What a test counts, others count up too: it compares with the count before.
The tests that kill parts, in `test_systems.py`, run last.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from engine.embedded import find_nats_server, free_ports
from engine.errors import SetupError
from tests.integration.bridge_process import Bridge, configuration
from tests.integration.connectors.stomp_jms import JmsClient

if TYPE_CHECKING:
    from collections.abc import Iterator

SYSTEMS = """\
routing.create-topics=true
claim-check.folder=var/bodies
source.jms.destinations={queues}
source.amqp.type=amqp
source.amqp.destinations=queue:amqp.in, topic:amqp.prices, queue:amqp.ask, queue:trip.in
source.amqp.selector=region IS NULL OR region <> 'test'
source.apps.type=amqp
source.apps.listen=amqp://127.0.0.1:{apps}
source.apps.destinations=queue:apps.*
source.files.type=dropbox
source.files.destinations=queue:inbox, queue:files.ask, topic:news
source.topics.type=kafka
source.topics.destinations=from-jms
source.topics.address=queue:back.${{topic}}
source.topics.hops=1
source.trip.type=kafka
source.trip.destinations=trip
source.trip.hops=1
source.mirror.type=kafka
source.mirror.destinations=mirror
source.bare.type=stomp
source.bare.destinations=queue:bare
source.bare.schema=avro:order.avsc
source.ticks.type=kafka
source.ticks.destinations=ticks
source.ticks.hops=1
source.ticks.schema=avro:order.avsc
sink.jms.type=stomp
sink.jms.reply-to=queue:bridge.replies
sink.jms.reply-timeout=4m
sink.amqp.type=amqp
sink.amqp.reply-to=queue:amqp.replies
sink.readers.type=amqp
sink.readers.listen=amqp://127.0.0.1:{readers}
sink.files.type=dropbox
sink.files.reply-to=queue:bridge.replies
"""
ROUTES = """\
routes.copies.in.include=region = 'copy'
routes.copies.out.topic=stomp:queue/copies
routes.seen.in.include=msg.address==seen
routes.seen.out.topic=seen

routes.fan.in.include=msg.address==fan
routes.fan.in.continue=true
routes.fan.out.topic=fan-1, jms:queue/fan.a, stomp:queue/fan.b, amqp:queue/fan.c, files:queue/fan-${msg.header.place}
routes.fan-again.in.include=msg.address==fan
routes.fan-again.out.topic=fan-2

routes.story.in.include=msg.address==story
routes.story.out.topic=story-1, jms:queue/story.out
routes.story.conv.key=msg.header.number

routes.scans.in.include=msg.address==scans
routes.scans.out.topic=scans, jms:queue/scans.out
routes.scans.out.claim-check-above=256KiB

routes.to-jms.in.include=msg.address==to.jms
routes.to-jms.out.topic=stomp:queue/from.jms
routes.to-kafka.in.include=msg.address==to.kafka
routes.to-kafka.out.topic=from-jms
routes.back.in.include=msg.address=='back.from-jms'
routes.back.out.topic=jms:queue/from.kafka
routes.mirror-out.in.include=msg.address==mirror
routes.mirror-out.out.topic=mirror
routes.mirror-in.in.include=msg.address=='kafka.mirror'
routes.mirror-in.out.topic=jms:queue/mirror

routes.bare.in.include=msg.address==bare AND msg.body.id > 2
routes.bare.out.topic=ticks
routes.bare.conv.key=msg.body.id
routes.ticks.in.include=msg.address=='kafka.ticks' AND msg.body.id > 2
routes.ticks.out.topic=jms:queue/ticks.${msg.body.country}, ticks-out
routes.ticks.conv.key=msg.body.id

routes.trip.in.include=msg.address==trip.in
routes.trip.out.topic=trip
routes.trip.conv.body=any
routes.trip-back.in.include=msg.address=='kafka.trip'
routes.trip-back.out.topic=amqp:queue/trip.out
routes.apps.in.include=msg.address==apps.in
routes.apps.out.topic=from.apps
routes.across.in.include=msg.address==apps.across
routes.across.out.topic=readers:queue/across
routes.amqp-in.in.include=msg.address==amqp.in AND JMSType = 'kafka'
routes.amqp-in.out.topic=from.amqp
routes.amqp-out.in.include=msg.address==amqp.in
routes.amqp-out.out.topic=amqp:queue/amqp.out.${msg.header.region}
routes.prices.in.include=msg.address==amqp.prices
routes.prices.out.topic=amqp:topic/prices.out
routes.amqp-ask.in.include=msg.address==amqp.ask
routes.amqp-ask.out.topic=jms:queue/amqp.service
routes.ask-amqp.in.include=msg.address==ask.amqp
routes.ask-amqp.out.topic=amqp:queue/service.amqp
routes.ask-amqp.conv.key=msg.header.MessageId

routes.by-stomp.in.include=msg.address==managed AND way = 'stomp'
routes.by-stomp.out.topic=stomp:queue/${msg.header.to}
routes.by-amqp.in.include=msg.address==managed AND way = 'amqp'
routes.by-amqp.out.topic=amqp:queue/${msg.header.to}
routes.request.in.include=msg.address==managed AND way = 'request'
routes.request.out.topic=amqp:queue/managed.service
routes.properties.in.include=msg.address==managed AND way = 'properties'
routes.properties.out.topic=stomp:queue/plain

routes.inbox.in.include=msg.address==inbox
routes.inbox.out.topic=files:queue/outbox-${msg.header.region}
routes.news.in.include=msg.address==news
routes.news.out.topic=files:topic/copies
routes.to-files.in.include=msg.address==to.files
routes.to-files.out.topic=dropbox:from-jms
routes.ask-files.in.include=msg.address==ask.files
routes.ask-files.out.topic=files:queue/service
routes.files-ask.in.include=msg.address==files.ask
routes.files-ask.out.topic=jms:queue/files.service
"""
QUEUES = (
    "fan",
    "scans",
    "story",
    "orders",
    "seen",
    "to.jms",
    "to.kafka",
    "mirror",
    "ask.amqp",
    "managed",
    "to.files",
    "ask.files",
)

ORDER = """{"type": "record", "name": "Order", "fields": [
{"name": "id", "type": "int"}, {"name": "country", "type": "string"}]}"""

NATS = """\
embedded.nats.port={nats}
source.nats.type=nats
source.nats.destinations=to.jms.>, ask.jms, to.template.>
sink.nats.type=nats
sink.nats.reply-to=bridge.replies
sink.nats.reply-timeout=60s
sink.brief.type=nats
sink.brief.reply-to=brief.replies
sink.brief.reply-timeout=2s
routes.to-nats.in.include=msg.address==to.nats
routes.to-nats.out.topic=nats:from.jms.${{msg.header.region}}
routes.nats-to-jms.in.include=msg.address LIKE 'to.jms.%'
routes.nats-to-jms.out.topic=jms:queue/from.nats
routes.ask-nats.in.include=msg.address==ask.nats
routes.ask-nats.out.topic=nats:service.nats
routes.ask-nobody.in.include=msg.address==ask.nobody
routes.ask-nobody.out.topic=brief:service.nobody
routes.ask-jms.in.include=msg.address==ask.jms
routes.ask-jms.out.topic=stomp:queue:service.jms
"""
NATS_QUEUES = ("to.nats", "ask.nats", "ask.nobody")


@pytest.fixture(scope="package")
def one_bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    """The bridge; without a NATS server on this machine, all systems but NATS."""
    apps, readers, nats = free_ports(3)
    queues, more = QUEUES, ""
    with suppress(SetupError):
        find_nats_server()
        queues, more = QUEUES + NATS_QUEUES, NATS.format(nats=nats)
    names = ", ".join(f"queue:{name}" for name in queues)
    systems = SYSTEMS.format(queues=names, apps=apps, readers=readers)
    folder = tmp_path_factory.mktemp("bridge")
    (folder / "order.avsc").write_text(ORDER)
    bridge = Bridge(configuration(folder, systems + ROUTES + more))
    bridge.start()
    try:
        bridge.wait_ready(400)
        yield bridge
        assert bridge.interrupt() == 0
    finally:
        bridge.end()


@pytest.fixture
def bridge(one_bridge: Bridge) -> Bridge:
    """Ready, whatever was killed before: NATS without a stream keeps nothing for who is not there."""
    one_bridge.wait_ready()
    return one_bridge


@pytest.fixture(scope="module")
def jms(one_bridge: Bridge, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JmsClient]:
    """A JMS application with Artemis' own client."""
    log = tmp_path_factory.mktemp("jms") / "client.log"
    client = JmsClient(f"tcp://127.0.0.1:{one_bridge.settings['embedded.artemis.port']}", log)
    yield client
    client.close()
