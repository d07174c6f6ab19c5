"""An election at a real Kafka: a member that Kafka has fenced, and what a bridge says while no bridge leads."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from engine.embedded import EmbeddedKafka, free_ports
from engine.kafka.clients import KafkaClients
from engine.supervision.election import Election
from routes.config import loads
from tests.conftest import JARS
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from routes.model import Config


def configuration(kafka: EmbeddedKafka, folder: Path, where: str = "") -> Config:
    """A bridge whose embedded Kafka is a given one, unless `where` says something else."""
    where = where or f"embedded.kafka.port={kafka.bootstrap.rpartition(':')[2]}"
    text = (
        f"bridge.id=elected-{folder.name}\n{where}\n"
        f"journal.topic=elected-{folder.name}\nsource.jms.type=stomp\nsource.jms.destinations=queue:a\n"
        "routes.all.in.include=JMSPriority >= 0\nroutes.all.out.topic=out\n"
    )
    return loads(text, base=folder)


@contextmanager
def elected(kafka: EmbeddedKafka, folder: Path) -> Iterator[Election]:
    election = Election(configuration(kafka, folder))
    election.start()
    try:
        until(lambda: election.leads)
        yield election
    finally:
        election.resign()


@pytest.fixture
def election(kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[Election]:
    with elected(kafka, tmp_path) as leading:
        yield leading


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, of 96 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        command = ["/bin/mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", folder]
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a disk that can be filled needs the right to mount one: {error}")
    yield folder
    subprocess.run(["/bin/umount", "--lazy", folder], check=True)


def fill(disk: Path) -> Path:
    """Fills a disk with a file, which is returned."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 65536)
        except OSError:
            return filler


def fence(election: Election) -> None:
    """Takes the place of the bridge's member in its group, and leaves the group."""
    settings = {name: value for name, value in election._settings().items() if name not in ("on_commit", "error_cb")}
    rival = KafkaClients(election._config.kafka_access).consumer(election._group, settings)
    rival.subscribe([election._topic])
    until(lambda: (rival.poll(0.1), rival.assignment())[1], what="the rival has the partition")
    until(lambda: not election.leads, what="the bridge is fenced")
    rival.close()


def test_a_bridge_that_was_fenced_stands_for_election_with_a_new_client_and_leads_again(election: Election) -> None:
    fence(election)
    until(lambda: election.leads, 20)
    assert election.failure is None


def test_a_bridge_stands_by_while_another_one_leads_and_takes_over_when_it_ends(
    kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    shared = configuration(
        kafka, tmp_path, f"kafka.bootstrap.servers={kafka.bootstrap}\nsource.jms.url=stomp://127.0.0.1:1"
    )
    first, second = Election(shared), Election(shared)
    first.start()
    until(lambda: first.leads)
    second.start()
    try:
        assert not second.has_leader
        until(lambda: second.stands_by)
        assert second.has_leader
        assert second.why_not == f"another bridge leads ({first._me}); takes over when it ends"
        first.resign()
        until(lambda: second.leads)
        assert second.has_leader
        assert not second.stands_by
    finally:
        first.resign()
        second.resign()


def test_a_bridge_whose_kafka_ended_on_a_full_disk_leads_again_when_there_is_room(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Else it would go on without Kafka for three quarters of a minute.
    monkeypatch.setattr("engine.supervision.election._EMBEDDED_SESSION_SECONDS", 10.0)
    kafka = EmbeddedKafka(small_disk, *free_ports(1), JARS)
    kafka.start()
    try:
        with elected(kafka, small_disk) as election:
            filler = fill(small_disk)
            until(lambda: not kafka.alive(), 60, "Kafka has ended")
            until(lambda: not election.leads, 60, "the lead has run out")
            assert not election.stands_by
            assert not election.has_leader
            assert election.why_not == f"waiting for Kafka at {kafka.bootstrap}"
            filler.unlink()
            kafka.start()
            until(lambda: election.leads, 60, "the bridge leads again")
    finally:
        kafka.stop()
