"""One marker in every secret of a configuration, and a bridge that starts, fails and stops: where it shows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest

from engine.embedded import EmbeddedKafka, free_ports
from engine.embedded.artemis import artemis_home
from engine.embedded.ports import LOOPBACK
from routes.config import load, show
from routes.config.fields import FIELDS
from tests.conftest import JARS
from tests.integration.bridge_process import ROOT, Bridge, descendants, wait
from tests.waiting import patience

PATHS = (
    "/",
    "/routes",
    "/try",
    "/settings",
    "/settings?all=1",
    "/dead-letters",
    "/health",
    "/ready",
    "/metrics",
    "/nothing",
    "/login",
)
MARK = "Zq9mark"
"""In every secret; nowhere else in the world."""

CONFIGURATION = """\
bridge.id=test
bridge.secret={mark}-0123456789abcdef0123456789-seals
kafka.bootstrap.servers={kafka}
kafka.security.protocol=SASL_PLAINTEXT
kafka.sasl.mechanism=PLAIN
kafka.sasl.username=bridge
kafka.sasl.password=${{env:KAFKA_SECRET}}
kafka.ssl.key.password={mark}-key
embedded.data={folder}/var
embedded.kafka.port={kafka_port}
embedded.artemis.port={core}
embedded.stomp.port={stomp}
embedded.amqp.port={amqp}
embedded.nats.port={nats}
http.address=127.0.0.1:{http}
http.token=${{file:http.token}}
http.username=me
http.password={mark}-http
http.url=http://127.0.0.1:{http}
http.oidc.issuer=http://127.0.0.1:{gone}
http.oidc.client.id=bridge
http.oidc.client.secret={mark}-oidc
http.operator.groups=ops
schema.registry.url=http://127.0.0.1:{gone}
schema.registry.username=me
schema.registry.password={mark}-registry
router.checkpoint={folder}/var/checkpoint
router.interval=5s
journal.partitions=1
spark.my.credential={mark}-spark
spark.eventLog.enabled=true
spark.eventLog.dir=file:{folder}/var/events
source.jms.type=stomp
source.jms.destinations=queue:orders
source.jms.username=me
source.jms.password=${{file:jms.password}}
source.plant.type=amqp
source.plant.destinations=queue:plant
source.plant.username=me
source.plant.password=pre-${{env:AMQP_SECRET}}
source.gone.type=stomp
source.gone.url=stomp://127.0.0.1:{gone}
source.gone.destinations=queue:gone
source.gone.username=me
source.gone.password={mark}-gone
source.apps.type=amqp
source.apps.listen=amqp://127.0.0.1:{listen}
source.apps.destinations=queue:apps
source.apps.username=app
source.apps.password={mark}-apps
sink.nats.type=nats
sink.nats.token=${{env:NATS_SECRET}}
sink.mq.type=jms
sink.mq.class-path={lib}/artemis-*.jar, {lib}/netty-*.jar, {lib}/commons-*.jar, {lib}/slf4j-*.jar, {lib}/log4j-*.jar
sink.mq.connection-factory=org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory
sink.mq.connection-factory.brokerURL=tcp://127.0.0.1:{gone}
sink.mq.username=me
sink.mq.password={mark}-mq
sink.mq.tls.key-store-password={mark}-keys
sink.mq.tls.trust-store-password={mark}-trust
sink.away.type=nats
sink.away.url=nats://127.0.0.1:{gone}
sink.away.token={mark}-away
routes.orders.in.include=msg.address==orders AND region = 'emea'
routes.orders.out.topic=routed
routes.orders.conv.key=msg.header.number
routes.nats.in.include=region = 'apac'
routes.nats.out.topic=nats:orders
routes.mq.in.include=region = 'eaeu'
routes.mq.out.topic=mq:queue/orders
routes.away.in.include=region = 'amer'
routes.away.out.topic=away:orders
routes.masked.in.include=region = 'afr'
routes.masked.out.topic=masked
routes.masked.out.mask=msg.body.card
routes.masked.out.mask-with=hash
routes.masked.out.mask-secret=${{env:MASK_SECRET}}
routing.create-topics=true
routing.dead-letter-topic=dead
routing.on-soft-failure=dead-letter
"""
VARIABLES = ("KAFKA_SECRET", "AMQP_SECRET", "NATS_SECRET", "MASK_SECRET")
ENVIRONMENT = {name: f"{MARK}-{name}-0123456789abcdef" for name in VARIABLES}


class SaslKafka(EmbeddedKafka):
    """With a second port, where `bridge` has to log in."""

    def __init__(self, data: Path) -> None:
        plain, sasl = free_ports(2)
        super().__init__(data, plain, JARS)
        self.sasl = f"{LOOPBACK}:{sasl}"

    def _properties(self, controller_port: int) -> dict[str, str]:
        plain = super()._properties(controller_port)
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        return plain | {
            "listeners": f"{plain['listeners']},SASL_PLAINTEXT://{self.sasl}",
            "advertised.listeners": f"{plain['advertised.listeners']},SASL_PLAINTEXT://{self.sasl}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
                f'{module} required user_bridge="{ENVIRONMENT["KAFKA_SECRET"]}";'
            ),
        }


@pytest.fixture
def sasl(tmp_path: Path) -> SaslKafka:
    """Not started."""
    return SaslKafka(tmp_path / "kafka")


@pytest.fixture
def bridge(sasl: SaslKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bridge]:
    folder = tmp_path / "bridge"
    (folder / "var" / "events").mkdir(parents=True)
    names = ("kafka_port", "core", "stomp", "amqp", "nats", "http", "gone", "listen")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    file = folder / "jms-bridge.properties"
    lib = artemis_home(JARS) / "lib"
    file.write_text(CONFIGURATION.format(folder=folder, mark=MARK, kafka=sasl.sasl, lib=lib, **ports))
    (folder / "http.token").write_text(f"{MARK}-token")
    (folder / "jms.password").write_text(f"{MARK}-jms\n")
    for name, value in (ENVIRONMENT | {"JMS_BRIDGE_LOG_LEVEL": "debug"}).items():
        monkeypatch.setenv(name, value)
    bridge = Bridge(file)
    yield bridge
    bridge.end()


@pytest.fixture
def kafka(sasl: SaslKafka) -> Iterator[SaslKafka]:
    sasl.start()
    yield sasl
    sasl.stop()


def page(bridge: Bridge, path: str) -> str:
    """What a page says to somebody who is logged in; all of the answer."""
    with closing(HTTPConnection(bridge.settings["http.address"], timeout=10)) as connection:
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {MARK}-token"})
            answer = connection.getresponse()
        except OSError as error:
            return str(error)
        return f"{answer.status} {answer.getheaders()} {answer.read().decode()}"


def said(bridge: Bridge, *arguments: str) -> str:
    """What a command says, whatever comes of it."""
    command = [sys.executable, "-m", "engine", *arguments, "-c", str(bridge.file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=patience(120), check=False)
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def processes(pid: int) -> Iterator[tuple[str, str, str]]:
    """Program, command line and environment of each process of a bridge."""
    for each in {pid, *descendants(pid)}:
        with suppress(OSError):
            folder = Path("/proc", str(each))
            program = str((folder / "exe").readlink())
            yield program, *((folder / name).read_bytes().decode(errors="replace") for name in ("cmdline", "environ"))


def files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def test_every_secret_of_the_field_table_is_in_this_test(bridge: Bridge) -> None:
    ends = {row.key.rpartition(".")[2] for row in show(bridge.file)}
    masked = {field.key.rpartition(".")[2] for field in FIELDS.fields if field.masked}
    # That is the path of a file with secrets, which the bridge does not hold.
    assert masked - {"credentials"} <= ends


@pytest.mark.usefixtures("kafka", "nats_server")
def test_no_secret_shows_anywhere(bridge: Bridge) -> None:
    config = load(bridge.file)
    assert config.secret_variables == set(ENVIRONMENT)
    folder = bridge.file.parent
    bridge.start()
    wait(lambda: bridge.running and '"source:jms":{"state":"ready"' in page(bridge, "/ready"), lambda: bridge.output)
    wait(lambda: '"router":{"state":"ready"' in page(bridge, "/ready"), lambda: bridge.output)
    wait(lambda: '"sink:away":{"state":"degraded"' in page(bridge, "/ready"), lambda: bridge.output)
    for region in ("emea", "apac", "amer", "afr"):
        bridge.send(range(5), region=region)
    bridge.send(range(1), number="not a key!")
    wait(lambda: "jmsbridge_routed_messages_total" in page(bridge, "/metrics"))

    told = {path: page(bridge, path) for path in PATHS}
    seen = list(processes(bridge.process.pid if bridge.process else 0))
    assert bridge.interrupt() == 0

    for arguments in (
        ("validate",),
        ("config", "show"),
        ("topology",),
        ("explain", "--address", "queue:orders", "--property", "region=emea"),
        ("dlt", "list"),
        ("journal", "tail", "-n", "5"),
    ):
        told[" ".join(arguments)] = said(bridge, *arguments)
    bridge.file.write_text(bridge.file.read_text().replace("KAFKA_SECRET}", "KAFKA_SECRET}-wrong"))
    bridge.start()
    assert bridge.process is not None
    assert bridge.process.wait(patience(120)) == 4, bridge.output
    told["output"] = bridge.output

    assert "refuses the login" in bridge.output
    assert {name for name, text in told.items() if MARK in text} == set()
    assert [cmdline for _, cmdline, _ in seen if MARK in cmdline] == []
    programs = {Path(program).name for program, _, _ in seen}
    assert {"java", "nats-server"} <= programs
    others = [program for program, _, environ in seen if MARK in environ and "python" not in program]
    assert others == []
    assert any((folder / "var" / "events").iterdir())
    kept = {"jms-bridge.properties", "http.token", "jms.password"}
    shown = [path for path in files(folder) if MARK.encode() in path.read_bytes() and path.name not in kept]
    assert shown == []
    assert not any(MARK.encode() in path.read_bytes() for path in files(folder.parent / "kafka" / "kafka" / "data"))
