"""`jms-bridge doctor` against real servers: all well, one away, a wrong login, a missing topic, a bridge that runs."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from engine.embedded import EmbeddedArtemis, EmbeddedKafka, EmbeddedNats, free_ports
from tests.commands import exit_code
from tests.conftest import JARS, TopicFactory
from tests.integration.connectors.secure import PASSWORD, USER, SecureArtemis
from tests.integration.doctor import Doctor
from tests.integration.topologies import definitions

ELSEWHERE = """\
bridge.id=b1
embedded.data={folder}/var
router.checkpoint={folder}/var/checkpoint
http.address=127.0.0.1:{http}
kafka.bootstrap.servers={kafka}
journal.topic={journal}
source.jms.type=stomp
source.jms.url={stomp}
source.jms.destinations=queue:{queue}
routes.orders.in.include=msg.address=={queue}
routes.orders.out.topic={destination}
"""


@pytest.fixture
def settings(tmp_path: Path, kafka: EmbeddedKafka, artemis: EmbeddedArtemis, topic: TopicFactory) -> dict[str, object]:
    """What a file says whose servers are all there; the journal is not made yet."""
    return {
        "folder": tmp_path,
        "http": free_ports(1)[0],
        "kafka": kafka.bootstrap,
        "journal": f"journal-{uuid.uuid4().hex[:8]}",
        "stomp": artemis.stomp_url,
        "queue": f"orders-{uuid.uuid4().hex[:8]}",
        "destination": topic("orders"),
    }


def written(settings: dict[str, object], more: str = "") -> Path:
    file = Path(str(settings["folder"])) / "jms-bridge.properties"
    file.write_text(ELSEWHERE.format(**settings) + more)
    return file


def topics(kafka: EmbeddedKafka) -> set[str]:
    return set(AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0}).list_topics(timeout=30).topics)


def test_all_is_well_and_nothing_is_changed(
    doctor: Doctor,
    settings: dict[str, object],
    kafka: EmbeddedKafka,
    artemis: EmbeddedArtemis,
    nats: EmbeddedNats,
    topic: TopicFactory,
) -> None:
    read = topic("read")
    file = written(
        settings,
        f"sink.amqp.type=amqp\nsink.amqp.url={artemis.amqp_url}\n"
        f"sink.nats.type=nats\nsink.nats.url={nats.url}\n"
        f"source.kafka.type=kafka\nsource.kafka.destinations={read}\nsource.kafka.address=queue:from-kafka\n",
    )
    before = topics(kafka)

    told = doctor(file)

    assert told.failed == set()
    assert told.code == 0
    found = {name: finding["found"] for name, finding in told.findings.items()}
    assert found["kafka"].startswith(f"1 broker at {kafka.bootstrap}, cluster ")
    assert f"{settings['destination']} can be used" in found["topics"]
    assert f"the bridge makes {settings['journal']}" in found["topics"] or settings["journal"] in found["topics"]
    assert found["source:jms"] == f"{artemis.stomp_url} takes the login"
    assert found["sink:amqp"] == f"{artemis.amqp_url} takes the login"
    assert found["sink:nats"] == f"{nats.url} takes the login"
    assert found["source:kafka"] == f"reads {read}"
    assert topics(kafka) == before
    assert not (file.parent / "var").exists()


def test_a_message_that_waits_in_a_queue_still_does_behind_it(
    doctor: Doctor, settings: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(settings)
    for command in (["send", f"queue:{settings['queue']}", "hello"], None, ["receive", f"queue:{settings['queue']}"]):
        if command is None:
            assert doctor(file).failed == set()
            continue
        assert exit_code(*command, "-c", str(file)) == 0
    assert "hello" in capsys.readouterr().out


def test_a_kafka_that_is_away_is_told_in_time_and_the_rest_all_the_same(
    doctor: Doctor, settings: dict[str, object]
) -> None:
    (port,) = free_ports(1)
    file = written({**settings, "kafka": f"127.0.0.1:{port}"})
    began = time.monotonic()
    told = doctor(file, "3s")
    assert time.monotonic() - began < 6
    assert (told.code, told.failed) == (6, {"kafka"})
    assert told.findings["kafka"]["remedy"] == "start it, or correct kafka.bootstrap.servers"
    assert told.findings["source:jms"]["state"] == "ok"


def test_a_broker_that_is_away_is_reported(doctor: Doctor, settings: dict[str, object]) -> None:
    (port,) = free_ports(1)
    told = doctor(written({**settings, "stomp": f"stomp://127.0.0.1:{port}"}))
    assert (told.code, told.failed) == (6, {"source:jms"})
    assert told.findings["source:jms"]["remedy"] == "start the broker, or correct source.jms.url"


def test_a_destination_that_is_missing_is_told_and_one_that_would_be_made_is_well(
    doctor: Doctor, settings: dict[str, object], kafka: EmbeddedKafka
) -> None:
    missing = f"missing-{uuid.uuid4().hex[:8]}"
    told = doctor(written({**settings, "destination": missing}))
    assert (told.code, told.failed) == (4, {f"topic {missing}"})
    assert told.findings[f"topic {missing}"]["found"] == f"{missing} (route 'orders') does not exist"

    told = doctor(written({**settings, "destination": missing}, "routing.create-topics=true\n"))
    assert told.failed == set()
    assert missing in told.findings["topics"]["found"].partition("the bridge makes")[2]
    assert missing not in topics(kafka)


def test_what_a_topology_and_a_source_of_a_stream_wait_for_is_told_before_the_start(
    doctor: Doctor,
    settings: dict[str, object],
    nats: EmbeddedNats,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prefix = f"p{uuid.uuid4().hex[:8]}"
    monkeypatch.setattr(definitions, "PREFIX", prefix)
    module = definitions.__name__
    stream = f"s{uuid.uuid4().hex[:8]}"
    more = (
        f"topologies.relayed.build={module}:relayed\ntopologies.chosen.build={module}:chosen\n"
        f"topologies.none.build={module}:no_such\n"
        f"source.n.type=nats\nsource.n.url={nats.url}\nsource.n.destinations={stream}.a\nsource.n.stream={stream}\n"
    )
    told = doctor(written(settings, more))
    assert (told.code, told.failed) == (2, {"topologies.none.build"})
    found = {name: (finding["state"], finding["found"]) for name, finding in told.findings.items()}
    reads, writes = (f"it {verb} topic '{prefix}-{name}'" for verb, name in (("reads", "late"), ("writes", "late-out")))
    lacks = f"{reads}, which does not exist; {writes}, which does not exist"
    assert found["topology relayed"] == ("warning", lacks)
    assert "has no function no_such" in found["topologies.none.build"][1]
    assert found["topologies.relayed.build"] == ("ok", "the topology can be built and planned")
    state, what = found["source:n"]
    assert (state, what) == ("warning", f"source 'n': stream '{stream}' at {nats.url} does not exist")
    assert told.findings["source:n"]["remedy"].startswith(f"make it, such as with: nats stream add {stream} ")

    file, said = written(settings, more), ""
    for more_options in ([], ["--connect"]):
        assert "late-out" not in said
        assert exit_code("validate", *more_options, "-c", str(file)) == 2
        said = capsys.readouterr().out
        assert f"{file}: error: topology 'none': '{module}:no_such': {module} has no function no_such" in said
    assert f"{file}: warning: topology relayed: {lacks} (create each: the topology waits for it)" in said
    assert f"{file}: warning: source:n: source 'n': stream '{stream}'" in said


def test_a_journal_that_cannot_be_made_as_configured_is_reported(
    doctor: Doctor, settings: dict[str, object], kafka: EmbeddedKafka
) -> None:
    told = doctor(written(settings, "journal.replication=3\n"))
    assert told.code == 4
    assert f"topic {settings['journal']}" in told.failed
    assert "cannot be created with 3 copies" in told.findings[f"topic {settings['journal']}"]["found"]
    assert settings["journal"] not in topics(kafka)


def test_a_journal_that_is_compacted_is_reported(
    doctor: Doctor, settings: dict[str, object], topic: TopicFactory
) -> None:
    journal = topic("journal", config={"cleanup.policy": "compact"})
    told = doctor(written({**settings, "journal": journal}))
    assert f"topic {journal}" in told.failed
    assert "is compacted, which drops messages" in told.findings[f"topic {journal}"]["found"]


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureArtemis]:
    server = SecureArtemis(tmp_path_factory.mktemp("secure"), JARS)
    server.start()
    yield server
    server.stop()


@pytest.mark.parametrize(("kind", "scheme"), [("stomp", "stomp+ssl"), ("amqp", "amqps")])
def test_a_login_is_taken_or_refused_and_no_password_is_shown(
    doctor: Doctor, settings: dict[str, object], secure: SecureArtemis, kind: str, scheme: str
) -> None:
    url = f"{scheme}://127.0.0.1:{secure.port}"
    sink = f"sink.out.type={kind}\nsink.out.url={url}\nsink.out.tls.ca={secure.certificates / 'ca.pem'}\n"
    escaped = PASSWORD.replace("\\", "\\\\")

    right = doctor(written(settings, f"{sink}sink.out.username={USER}\nsink.out.password={escaped}\n"))
    assert right.failed == set()
    assert right.findings["sink:out"]["found"] == f"{url} takes the login"

    wrong = doctor(written(settings, f"{sink}sink.out.username={USER}\nsink.out.password=guessed-wrong\n"))
    assert (wrong.code, wrong.failed) == (4, {"sink:out"})
    assert wrong.findings["sink:out"]["remedy"] == "correct the login of sink.out, or the rights of its user"
    assert "guessed-wrong" not in json.dumps(wrong.findings)


def test_a_certificate_that_is_not_trusted_is_reported(
    doctor: Doctor, settings: dict[str, object], secure: SecureArtemis
) -> None:
    told = doctor(written(settings, f"sink.out.type=amqp\nsink.out.url=amqps://127.0.0.1:{secure.port}\n"))
    assert (told.code, told.failed) == (6, {"sink:out"})
    assert "its certificate is not to be trusted: " in told.findings["sink:out"]["found"]
    assert told.findings["sink:out"]["remedy"].endswith("sink.out.tls.*")
