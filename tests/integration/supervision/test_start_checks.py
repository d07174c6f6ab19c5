"""What a start refuses before Spark is started: a checkpoint or a journal that is not what the last run has left."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.embedded import EmbeddedKafka, free_ports
from engine.errors import HardFailureError, UnreachableError
from engine.kafka.clients import KafkaClients
from engine.kafka.offsets import KafkaOffsets
from engine.kafka.topics import BridgeTopics
from engine.router.generation import Committed, Generation, Generations, Start
from engine.router.last_progress import check_progress, is_refusal_likely
from engine.router.position_store import PositionStore
from engine.spark.launch import log_file
from engine.spark.section import SparkConfig
from routes.config import load
from routes.model import Config, Embedded
from tests.conftest import TopicFactory
from tests.integration.bridge_process import configuration, run_to_its_end
from tests.topic_records import ordered_producer

RECORDS = 5
CONFIGURATION = """\
bridge.id={name}
kafka.bootstrap.servers={bootstrap}
http.address=127.0.0.1:{http}
embedded.data={folder}/var
router.checkpoint={folder}/checkpoint
journal.topic={journal}
source.jms.type=stomp
source.jms.url=stomp://127.0.0.1:1
source.jms.destinations=queue:a
routes.all.in.include=TRUE
routes.all.out.topic={out}
"""


class LastRun:
    """What a router has left that has routed all of its journal: its checkpoint, and its notes in Kafka."""

    def __init__(self, config: Config) -> None:
        BridgeTopics(config).ensure_state_topic()
        producer = ordered_producer(config.bootstrap_servers)
        for _ in range(RECORDS):
            producer.produce(config.journal.topic, b"record")
        assert producer.flush(30) == 0
        self.config = config
        self.generations = Generations(config.router.checkpoint)
        identity = KafkaOffsets(KafkaClients(config.kafka_access)).identity(config.journal.topic)
        start = Start(config.journal.topic, identity, {0: 0}, {}, config.bridge_id, "", "run")
        self.store = PositionStore(KafkaClients(config.kafka_access), config.bridge_id, config.journal)
        self.note(start, RECORDS - 1)

    @property
    def newest(self) -> Generation:
        generation = self.generations.newest()
        assert generation is not None
        return generation

    def note(self, start: Start, decided: int) -> None:
        """A run that began there, and has decided on all records up to one."""
        self.store.open()
        generation = self.generations.create(start)
        generation.stop({0: decided})
        self.store.begin(generation)
        self.store.note(None, {0: decided})
        self.store.write(30)

    def damage(self) -> None:
        (self.newest.folder / "start.json").write_text("{")

    def lose(self) -> None:
        shutil.rmtree(self.generations.root)

    def belong_to_another_journal(self) -> None:
        start = replace(self.newest.start, journal="another")
        self.note(start, RECORDS - 1)

    def belong_to_a_deleted_journal(self) -> None:
        self.note(replace(self.newest.start, journal_id="x"), RECORDS - 1)

    def be_behind_the_end(self) -> None:
        self.note(self.newest.start, RECORDS)


@pytest.fixture
def config(kafka: EmbeddedKafka, topic: TopicFactory, tmp_path: Path) -> Config:
    (http,) = free_ports(1)
    names = {"name": topic("bridge"), "journal": topic("journal"), "out": topic("out")}
    file = tmp_path / "jms-bridge.properties"
    file.write_text(CONFIGURATION.format(bootstrap=kafka.bootstrap, http=http, folder=tmp_path, **names))
    return load(file)


@pytest.fixture
def last_run(config: Config) -> LastRun:
    return LastRun(config)


def test_a_first_start_and_one_after_a_good_end_are_let_through(config: Config) -> None:
    BridgeTopics(config).ensure_state_topic()
    check_progress(config, leads=True)
    LastRun(config)
    check_progress(config, leads=True)


REFUSED = [
    (LastRun.damage, r"the router's checkpoint cannot be used: .*start\.json is damaged: .* set router\.checkpoint to"),
    (LastRun.lose, r"the router's checkpoint cannot be used: there is none in .*/checkpoint any more\. Either restore"),
    (LastRun.belong_to_another_journal, r"journal\.topic is '.*', but the checkpoint .* belongs to the journal 'anoth"),
    (LastRun.belong_to_a_deleted_journal, r"the journal '.*' was deleted and created again since the router last ran"),
    (LastRun.be_behind_the_end, r"the journal '.*' has lost its end since the router last ran. Either restore it, or "),
]


@pytest.mark.parametrize(("fault", "told"), REFUSED)
def test_what_the_last_run_left_is_refused(last_run: LastRun, fault: Callable[[LastRun], None], told: str) -> None:
    fault(last_run)
    with pytest.raises(HardFailureError, match=told):
        check_progress(last_run.config, leads=True)
    with pytest.raises(HardFailureError, match=told):
        check_progress(last_run.config, leads=False)


def test_a_look_of_a_bridge_that_stands_by_leaves_the_notes_to_the_one_that_leads(last_run: LastRun) -> None:
    check_progress(last_run.config, leads=False)
    last_run.store.note(Committed({0: 1}, 1))
    last_run.store.write(30)


def test_a_kafka_that_does_not_answer_is_waited_for(last_run: LastRun) -> None:
    away = replace(last_run.config, kafka=replace(last_run.config.kafka, bootstrap_servers="127.0.0.1:1"))
    with pytest.raises(UnreachableError):
        check_progress(away, leads=False)


def test_a_refused_start_ends_the_bridge_without_spark(last_run: LastRun) -> None:
    last_run.damage()
    began = time.monotonic()
    code, _, err = run_to_its_end(last_run.config.path, "--only", "router")
    print(f"\nrefused after {time.monotonic() - began:.1f} s")
    assert code == 4, err
    assert re.search(r"jms-bridge: the router's checkpoint cannot be used: .*start\.json is damaged: ", err)
    assert not (last_run.config.embedded.data / "log" / "spark.log").exists()


def test_a_start_that_only_kafka_can_refuse_ends_the_bridge_and_its_spark(last_run: LastRun) -> None:
    last_run.lose()
    code, _, err = run_to_its_end(last_run.config.path, "--only", "router")
    assert code == 4, err
    assert re.search("jms-bridge: the router's checkpoint cannot be used: there is none in ", err)
    assert (last_run.config.embedded.data / "log" / "spark.log").exists()
    (own,) = (path for path in (last_run.config.embedded.data / "spark" / "tmp").iterdir() if path.is_dir())
    assert not [path for path in Path("/proc").glob("[0-9]*/environ") if str(own) in _text(path)]


def _text(path: Path) -> str:
    """The text of a file of a process; empty once the process is gone."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def test_spark_waits_only_for_a_start_that_looks_like_being_refused(last_run: LastRun) -> None:
    own = last_run.config
    config = replace(own, embedded=replace(own.embedded, mode=Embedded.ON))
    assert not is_refusal_likely(config)
    assert not is_refusal_likely(own)
    assert is_refusal_likely(config.with_section(SparkConfig({"spark.master": "local[4]"})))
    assert is_refusal_likely(replace(config, journal=replace(config.journal, topic="another")))
    last_run.damage()
    assert is_refusal_likely(config)
    last_run.lose()
    assert not is_refusal_likely(config)
    assert not is_refusal_likely(own)
    log_file(own.embedded.data).parent.mkdir(parents=True)
    log_file(own.embedded.data).touch()
    assert is_refusal_likely(own)
    assert not is_refusal_likely(config)
    (config.embedded.data / "kafka" / "data" / f"{config.journal.topic}-0").mkdir(parents=True)
    assert is_refusal_likely(config)


def test_a_start_with_an_embedded_kafka_is_refused_without_spark_too(tmp_path: Path) -> None:
    checkpoint = tmp_path / "var" / "checkpoint"
    checkpoint.mkdir(parents=True)
    (checkpoint / "begun").write_text("{}")
    code, _, err = run_to_its_end(configuration(tmp_path))
    assert code == 4, err
    assert re.search(
        f"jms-bridge: the router's checkpoint cannot be used: {checkpoint} has no generation any more", err
    )
    assert not (tmp_path / "var" / "log" / "spark.log").exists()
