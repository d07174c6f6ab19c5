"""A whole bridge to torment: every kind of source and sink, its brokers, and a proxy on each connection to a broker."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nats.js.api import AckPolicy, ConsumerConfig, StreamConfig

from engine.embedded import EmbeddedNats, find_nats_server, free_ports
from tests.chaos.ledger import DEAD, KAFKA, SOURCES
from tests.chaos.outputs import ArtemisQueue, Dropbox, Journal, KafkaTopics, Stream, with_streams
from tests.chaos.producers import AmqpSender, DropboxSender, JetStreamSender, KafkaSender, StompSender
from tests.dropboxes import Dropboxes
from tests.integration.bridge_process import Bridge, descendants, part, wait
from tests.integration.connectors.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nats.js import JetStreamContext

    from tests.chaos.ledger import Issuer
    from tests.chaos.outputs import Output
    from tests.chaos.producers import Sender

__all__ = ["LINKS", "System"]

LINKS = tuple(f"{kind}:{name}" for kind in ("source", "sink") for name in ("stomp", "amqp", "nats"))
"""The parts that are connected to a broker, each through a proxy of its own."""

_READY_SECONDS = 600.0
_SERVERS = ("java", "nats-server")
_ACK_WAIT_SECONDS = 5.0
"""After so long JetStream delivers again what a killed source had; its default would make every run wait for it."""
_DUPLICATE_SECONDS = 600.0
# A broker is embedded for those without a url; the others are led through proxies.
_PROPERTIES = """\
bridge.id=chaos
embedded=on
embedded.data={folder}/var
embedded.kafka.port={kafka}
embedded.artemis.port={core}
embedded.stomp.port={stomp}
embedded.amqp.port={amqp}
embedded.nats.port={nats}
http.address=127.0.0.1:{http}
router.checkpoint={folder}/var/checkpoint
router.mode={mode}
journal.partitions=2
routing.dead-letter-topic=chaos.dead
routing.on-soft-failure=dead-letter
source.stomp.type=stomp
source.stomp.destinations=queue:in.stomp
source.amqp.type=amqp
source.amqp.destinations=queue:in.amqp
source.nats.type=nats
source.nats.destinations=in.nats
source.nats.stream=IN
source.dropbox.type=dropbox
source.dropbox.root={folder}/boxes
source.dropbox.destinations=queue:in
source.kafka.type=kafka
source.kafka.destinations=chaos.in
source.kafka.address=queue:in.kafka
sink.stomp.type=stomp
sink.amqp.type=amqp
sink.nats.type=nats
sink.nats.stream=true
sink.dropbox.type=dropbox
sink.dropbox.root={folder}/boxes
sink.idle-jms.type=stomp
sink.idle-nats.type=nats
routes.to-stomp.in.include=to = 'stomp'
routes.to-stomp.out.topic=stomp:queue/out.stomp
routes.to-amqp.in.include=to = 'amqp'
routes.to-amqp.out.topic=amqp:queue/out.amqp
routes.to-nats.in.include=to = 'nats'
routes.to-nats.out.topic=nats:out.nats
routes.to-dropbox.in.include=to = 'dropbox'
routes.to-dropbox.out.topic=dropbox:queue/out
routes.to-nowhere.in.include=to = 'dead'
routes.to-nowhere.out.topic=chaos.kafka
routes.to-nowhere.conv.key=msg.header.account
"""
_PER_SOURCE = """\
routes.from-{source}.in.include=to = 'kafka' AND from = '{source}'
routes.from-{source}.out.topic=chaos.{source}
routes.from-{source}.conv.key=msg.header.CorrelationId
"""
_PER_LINK = """\
{link}.url={scheme}://127.0.0.1:{port}
{link}.heartbeat=2s
"""


class System:
    """One bridge in a folder of its own."""

    def __init__(
        self,
        folder: Path,
        mode: str,
        more: str = "",
        launcher: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        stream_messages: int = -1,
    ) -> None:
        """`more` are properties that override the others; `launcher` and `environment` are those of `Bridge`.

        Each stream of NATS keeps the newest `stream_messages`; -1: all.
        """
        self.mode = mode
        self._stream_messages = stream_messages
        names = ("kafka", "core", "stomp", "amqp", "nats", "http")
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        self.proxies = {link: Proxy(self.ports[link.partition(":")[2]]) for link in LINKS}
        lines = _PROPERTIES.format(folder=folder, mode=mode, **self.ports)
        lines += "".join(_PER_SOURCE.format(source=source) for source in SOURCES)
        for link, proxy in self.proxies.items():
            lines += _PER_LINK.format(link=link.replace(":", "."), scheme=link.partition(":")[2], port=proxy.port)
        file = folder / "jms-bridge.properties"
        file.write_text(lines + more)
        self.bridge = Bridge(file, launcher, environment)
        self.folder = folder
        self.boxes = Dropboxes(folder / "boxes")
        self._nats_url = f"nats://127.0.0.1:{self.ports['nats']}"
        self.outputs = self._outputs()
        self.journal = Journal(self.bridge.bootstrap)

    def start(self) -> None:
        """Returns when everything is ready."""
        self._make_streams()
        self.bridge.start()
        self.bridge.wait_ready(_READY_SECONDS)

    def end(self) -> None:
        """Leaves no process behind, and the folder as it is."""
        self.bridge.end()
        for output in self.outputs.values():
            output.close()
        for proxy in self.proxies.values():
            proxy.__exit__()

    def process(self, name: str) -> int:
        """The process of a part, once it runs."""
        return self._found(lambda: self._part(name), name)

    def server(self, name: str) -> int:
        """What a part has started: the JVM of the router, a broker."""
        return self._found(lambda: self._server(name), f"what {name} runs")

    def senders(self, ledger: Issuer, per_second: Mapping[str, int]) -> Sequence[Sender]:
        """One for each source."""
        stomp = self.ports["stomp"]
        return [
            StompSender(ledger, "stomp", per_second["stomp"], stomp, "in.stomp"),
            AmqpSender(ledger, "amqp", per_second["amqp"], f"amqp://127.0.0.1:{self.ports['amqp']}", "in.amqp"),
            JetStreamSender(ledger, "nats", per_second["nats"], self._nats_url, "in.nats"),
            DropboxSender(ledger, "dropbox", per_second["dropbox"], self.boxes.queue("in")),
            KafkaSender(ledger, "kafka", per_second["kafka"], self.bridge.bootstrap, "chaos.in"),
        ]

    def waiting(self) -> int:
        """Messages that are at the sources' brokers, or between the journal and the sinks' systems."""
        box = self.boxes.queue("in")
        files = [each for name in ("target", "processing") for each in (box / name).rglob("*") if each.is_file()]
        queues = 0
        for name in ("stomp", "amqp"):
            with closing(ArtemisQueue(self.ports["stomp"], f"in.{name}")) as queue:
                queues += queue.count()
        lag = sum(self.bridge.metric(f"jmsbridge_{name}_lag_records") for name in ("journal", "sink"))
        return len([each for each in files if each.name != ".lock"]) + queues + self._unread() + int(lag)

    def _outputs(self) -> Mapping[str, Output]:
        """By destination, each topic of Kafka on its own."""
        bootstrap, stomp = self.bridge.bootstrap, self.ports["stomp"]
        return {
            **{f"{KAFKA}.{source}": KafkaTopics(bootstrap, f"chaos.{source}") for source in SOURCES},
            DEAD: KafkaTopics(bootstrap, "chaos.dead"),
            "stomp": ArtemisQueue(stomp, "out.stomp"),
            "amqp": ArtemisQueue(stomp, "out.amqp"),
            "nats": Stream(self._nats_url, "OUT"),
            "dropbox": Dropbox(self.boxes.queue("out")),
        }

    def _make_streams(self) -> None:
        """A bridge asks for streams that exist, so its server runs once before it for that."""

        async def make(streams: JetStreamContext) -> None:
            for name, window in (("IN", 120.0), ("OUT", _DUPLICATE_SECONDS)):
                config = StreamConfig(name, subjects=[f"{name.lower()}.>"], duplicate_window=window)
                await streams.add_stream(config, max_msgs=self._stream_messages)
            consumer = ConsumerConfig(
                durable_name="chaos-nats", ack_policy=AckPolicy.EXPLICIT, ack_wait=_ACK_WAIT_SECONDS
            )
            consumer.max_ack_pending, consumer.filter_subject = 25_000, "in.nats"
            await streams.add_consumer("IN", consumer)

        server = EmbeddedNats(self.folder / "var", self.ports["nats"], find_nats_server())
        server.start()
        try:
            with_streams(self._nats_url, make)
        finally:
            server.stop()

    def _unread(self) -> int:
        async def ask(streams: JetStreamContext) -> int:
            found = await streams.consumer_info("IN", "chaos-nats")
            return (found.num_pending or 0) + (found.num_ack_pending or 0)

        return with_streams(self._nats_url, ask)

    @staticmethod
    def _found(find: Callable[[], int | None], what: str) -> int:
        wait(lambda: find() is not None, lambda: f"{what} is not there", _READY_SECONDS)
        found = find()
        if found is None:
            raise LookupError(f"{what} has just ended")
        return found

    def _part(self, name: str) -> int | None:
        with suppress(LookupError, FileNotFoundError, ProcessLookupError):
            return part(self.bridge, name)
        return None

    def _server(self, name: str) -> int | None:
        process = self._part(name)
        for pid in descendants(process) if process else ():
            with suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().strip() in _SERVERS:
                    return pid
        return None
