"""What doctor finds of a machine: ports, folders, files, disks, the clock, jars."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from engine.connectors.amqp.settings import AmqpSourceConfig
from engine.doctor.checks import Severity, ok
from engine.doctor.folders import (
    check_file,
    check_files,
    check_folder,
    check_hard_links,
    check_privacy,
    check_secrets,
    existing,
)
from engine.doctor.machine import (
    Room,
    check_disks,
    check_embedded_ports,
    check_port,
    is_synchronised,
    judge,
    listening,
    room,
)
from engine.doctor.versions import check_jars, check_packages, jars_of
from engine.embedded.ports import LOOPBACK, free_ports, holder_id, is_held_by
from engine.file_lock import part_lock
from routes.config import loads
from routes.config.snapshot import Snapshot
from routes.systems import system_named

MIB = 1 << 20
NOBODY = 1 << 30
"""An id that no process has."""
PLAIN = """\
bridge.id=b
source.s.type=stomp
source.s.destinations=queue:orders
routes.o.in.include=msg.address==orders
routes.o.out.topic=orders
"""

# Permissions do not hold for root; as another user the same tests ask the system itself.
needs_permissions = pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server((LOOPBACK, 0)) as server:
        yield server.getsockname()[1]


def test_a_port_is_free_or_taken_by_somebody_or_by_the_bridge_itself(taken: int) -> None:
    (free,) = free_ports(1)
    assert check_port("http.address", LOOPBACK, free, running=False) == ok("http.address", f"port {free} is free")
    foreign = check_port("http.address", LOOPBACK, taken, running=False)
    assert (foreign.state, foreign.exit_code) == (Severity.FAILED, 3)
    assert foreign.found.startswith(f"port {taken} is in use")
    if sys.platform == "linux":
        assert foreign.found.endswith(f" (pid {os.getpid()})")
    assert foreign.remedy == "stop that program, or set http.address to another address or port"
    assert check_port("http.address", LOOPBACK, taken, running=True).state is Severity.OK


def test_an_address_that_is_none_of_this_machine_cannot_be_listened_on() -> None:
    # Of a network that is for documentation only (RFC 5737).
    found = check_port("http.address", "192.0.2.1", 8480, running=False)
    assert found.state is Severity.FAILED
    assert found.found.startswith("port 8480 cannot be used on 192.0.2.1: ")


def test_the_ports_of_embedded_servers_are_those_that_the_bridge_would_start(taken: int) -> None:
    kafka, artemis, amqp = free_ports(3)
    ports = (
        f"embedded.kafka.port={kafka}\nembedded.artemis.port={artemis}\nembedded.stomp.port={taken}\n"
        f"embedded.amqp.port={amqp}\n"
    )
    found = list(check_embedded_ports(loads(PLAIN + ports), running=False))
    assert [(each.name, each.state.value) for each in found] == [
        ("embedded.kafka.port", "ok"),
        ("embedded.artemis.port", "ok"),
        ("embedded.stomp.port", "failed"),
        ("embedded.amqp.port", "ok"),
    ]
    elsewhere = "kafka.bootstrap.servers=127.0.0.1:1\nsource.s.url=stomp://127.0.0.1:1\n"
    assert list(check_embedded_ports(loads(PLAIN + elsewhere), running=False)) == []


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not show who listens on a port")
def test_ports_of_another_bridge_with_the_same_id_are_in_the_way(taken: int, tmp_path: Path) -> None:
    kafka, stomp, amqp = free_ports(3)
    config = loads(PLAIN + f"embedded.data={tmp_path}\nembedded.artemis.port={taken}\nembedded.kafka.port={kafka}\n"
                   f"embedded.stomp.port={stomp}\nembedded.amqp.port={amqp}\n")  # fmt: skip

    def found() -> str:
        (each,) = (each for each in check_embedded_ports(config, running=True) if each.name == "embedded.artemis.port")
        return each.state.value

    # A bridge of this id runs, but none in this data folder.
    assert found() == "failed"
    lock = part_lock(tmp_path, "artemis")
    lock.parent.mkdir()
    lock.write_text(f"{os.getpid()}\n")
    assert found() == "ok"
    # The bridge works here, but another program has the port.
    lock.write_text(f"{NOBODY}\n")
    assert found() == "failed"
    lock.write_text("")
    assert found() == "failed"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not show who listens on a port")
def test_the_holder_of_a_port_is_found_behind_files_that_are_closed_meanwhile() -> None:
    before = [os.open(os.devnull, os.O_RDONLY) for _ in range(4)]
    with socket.create_server((LOOPBACK, 0)) as server:
        for file in before:
            # The listing of open files takes such a number itself, and has given it back when the file is looked at.
            os.close(file)
        assert holder_id(server.getsockname()[1]) == os.getpid()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not show who listens on a port")
def test_a_port_is_held_by_a_process_and_by_those_that_have_started_it(taken: int) -> None:
    (free,) = free_ports(1)
    assert (holder_id(taken), holder_id(free)) == (os.getpid(), None)
    assert is_held_by(taken, os.getpid())
    assert is_held_by(taken, os.getppid())
    assert not is_held_by(taken, NOBODY)


@pytest.mark.parametrize(
    ("listen", "expected"),
    [
        ("amqp://bridge.example:5700", ("bridge.example", 5700)),
        ("amqps://[::1]", ("::1", 5671)),
        ("amqp://127.0.0.1", ("127.0.0.1", 5672)),
    ],
)
def test_a_listener_has_the_port_of_its_scheme_unless_it_names_one(listen: str, expected: tuple[str, int]) -> None:
    assert listening(AmqpSourceConfig(name="l", type=system_named("amqp"), listen=listen, destinations=())) == expected


def test_a_folder_is_there_or_can_be_made(tmp_path: Path) -> None:
    assert check_folder("embedded.data", tmp_path) == ok("embedded.data", f"{tmp_path} can be written")
    deep = tmp_path / "a" / "b"
    assert check_folder("embedded.data", deep) == ok("embedded.data", f"{deep} is not there yet; the bridge makes it")
    assert not deep.parent.exists()


def test_a_file_in_place_of_a_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "var").write_text("")
    found = check_folder("embedded.data", tmp_path / "var" / "checkpoint")
    assert (found.state, found.found, found.exit_code) == (Severity.FAILED, f"{tmp_path}/var is not a folder", 3)
    assert found.remedy.endswith("or set embedded.data to another folder")


def test_a_folder_that_every_user_can_enter_is_reported(tmp_path: Path) -> None:
    with TemporaryDirectory() as open_to_all:
        folder = Path(open_to_all)
        folder.chmod(0o755)
        (inner := folder / "my var").mkdir(mode=0o755)
        (found,) = check_privacy("embedded.data", inner)
        assert (found.state, found.remedy) == (Severity.WARNING, f"chmod go-rwx '{inner}'")
        inner.chmod(0o750)
        assert list(check_privacy("embedded.data", inner)) == []
        inner.chmod(0o755)
        folder.chmod(0o700)
        assert list(check_privacy("embedded.data", inner)) == []
    assert list(check_privacy("embedded.data", tmp_path / "none")) == []


def test_hard_links_to_files_of_others_are_reported(tmp_path: Path) -> None:
    switch = tmp_path / "protected_hardlinks"
    assert check_hard_links(switch).state is Severity.OK
    switch.write_text("1\n")
    assert check_hard_links(switch).state is Severity.OK
    switch.write_text("0\n")
    assert check_hard_links(switch).remedy == "sysctl -w fs.protected_hardlinks=1"


@needs_permissions
def test_a_folder_that_is_closed_or_has_a_closed_one_in_it_is_reported(tmp_path: Path) -> None:
    closed = tmp_path / "3"
    closed.mkdir(mode=0o500)
    assert check_folder("router.checkpoint", closed).found == f"{closed} cannot be written"
    assert check_folder("router.checkpoint", closed / "4").found == f"{closed} cannot be written"
    within = check_folder("router.checkpoint", tmp_path)
    assert within.state is Severity.FAILED
    assert within.found.startswith(f"{closed} belongs to ")


def test_the_nearest_that_exists_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert existing(tmp_path / "a" / "b") == tmp_path
    monkeypatch.chdir(tmp_path)
    assert existing(Path("a") / "b") == tmp_path


def test_a_file_with_a_secret_is_for_its_user_alone(tmp_path: Path) -> None:
    key = tmp_path / "my key.pem"
    key.write_text("")
    key.chmod(0o640)
    assert list(check_file(key, secret=True)) == []
    key.chmod(0o644)
    assert list(check_file(key, secret=False)) == []
    (found,) = check_file(key, secret=True)
    assert found.state is Severity.WARNING
    assert found.remedy == f"chmod o-rwx '{key}'"
    (gone,) = check_file(tmp_path / "gone", secret=False)
    assert (gone.state, gone.exit_code) == (Severity.FAILED, 3)


def test_secrets_are_looked_for_where_the_configuration_has_them(tmp_path: Path) -> None:
    file, password = tmp_path / "jms-bridge.properties", tmp_path / "password"
    password.write_text("hunter2\n")
    login = "source.s.url=stomp://127.0.0.1:1\nsource.s.username=me\nsource.s.password="

    def found(last: str) -> list[tuple[str, str]]:
        file.write_text(PLAIN + last)
        for each in (file, password):
            each.chmod(0o644)
        snapshot = Snapshot.take(file)
        return [(finding.name, finding.state.value) for finding in check_files(snapshot.load(), snapshot)]

    assert found("") == []
    assert found(login + "hunter2\n") == [("file jms-bridge.properties", "warning")]
    assert found(login + "${file:password}\n") == [("file password", "warning")]


@pytest.mark.parametrize(
    ("free_bytes", "free_inodes", "state"),
    [
        (1024 * MIB, 10_000, Severity.OK),
        (1024 * MIB, None, Severity.OK),
        (1024 * MIB - 1, None, Severity.WARNING),
        (100 * MIB, 10_000, Severity.WARNING),
        (100 * MIB - 1, None, Severity.FAILED),
        (0, 0, Severity.FAILED),
        (1 << 40, 9_999, Severity.WARNING),
        (1 << 40, 1_000, Severity.WARNING),
        (1 << 40, 999, Severity.FAILED),
    ],
)
def test_a_disk_is_judged_by_its_bytes_and_its_inodes(
    free_bytes: int, free_inodes: int | None, state: Severity
) -> None:
    found = judge("logs", Path("/var"), Room(free_bytes, free_inodes))
    assert found.state is state
    assert (found.exit_code == 3) is (state is Severity.FAILED)
    assert bool(found.remedy) is (state is not Severity.OK)


def test_a_disk_is_told_in_units_for_people() -> None:
    assert judge("logs", Path("/var"), Room(3 << 29, 20_000)).found == (
        "1.5 GiB free, room for 20,000 files at /var (logs)"
    )
    assert judge("logs", Path("/var"), Room(512 * MIB, None)).found == "512 MiB free at /var (logs)"


def test_what_is_on_one_disk_is_one_finding(tmp_path: Path) -> None:
    (found,) = check_disks({"embedded.data": tmp_path, "logs": tmp_path / "log"})
    assert found.found.endswith(f" at {tmp_path} (embedded.data, logs)")
    assert room(tmp_path).free_bytes == pytest.approx(
        os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize, abs=1 << 30
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has adjtimex")
def test_the_kernel_says_twice_the_same_of_the_clock() -> None:
    assert is_synchronised() in (True, False, None)
    assert is_synchronised() is is_synchronised()


def test_jars_are_looked_for_where_a_part_needs_them(tmp_path: Path) -> None:
    assert jars_of(None) == ("spark",)
    assert jars_of(loads(PLAIN)) == ("spark", "kafka", "artemis")
    assert jars_of(loads(PLAIN + "kafka.bootstrap.servers=127.0.0.1:1\n")) == ("spark", "artemis")
    (tmp_path / "spark").mkdir()
    (missing,) = check_jars(tmp_path, ("spark", "kafka"))
    assert (missing.state, missing.exit_code) == (Severity.FAILED, 3)
    assert missing.found == f"no jms-bridge-spark.jar in {tmp_path}/spark"
    (tmp_path / "spark" / "jms-bridge-spark.jar").touch()
    assert list(check_jars(tmp_path, ("spark",))) == [ok("jars", f"spark in {tmp_path}")]


def test_installed_packages_are_those_that_are_pinned() -> None:
    found = {finding.name: finding for finding in check_packages()}
    assert found.keys() == {"python", "jms-bridge", "pyspark", "librdkafka"}
    assert all(finding.state is Severity.OK for finding in found.values())


@pytest.mark.parametrize(("secret", "found"), [("x", 1), ("seven-7", 1), ("eight-88", 0), ("", 0)])
def test_a_secret_too_short_to_be_masked_everywhere_is_warned_of(secret: str, found: int, tmp_path: Path) -> None:
    file = tmp_path / "b.properties"
    file.write_text(f"{PLAIN}source.s.username=u\nsource.s.password={secret}\n")
    told = list(check_secrets(Snapshot.take(file)))
    assert [(each.name, each.state) for each in told] == [("secrets", Severity.WARNING)] * found
    assert all(each.found.startswith("source.s.password: fewer than 8 characters") for each in told)
