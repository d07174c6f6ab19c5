"""The embedded NATS server answers, keeps its streams, and goes away when it should."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.embedded import EmbeddedNats, free_ports
from engine.embedded.nats import SYSTEM_PROGRAMS
from engine.embedded.ports import accepts
from engine.errors import SetupError
from tests.processes import gone
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

MIB = 1024 * 1024


@pytest.fixture
def own_nats(tmp_path: Path, nats_server: Path) -> Iterator[EmbeddedNats]:
    """One that a test may stop, kill and start."""
    server = EmbeddedNats(tmp_path, *free_ports(1), nats_server)
    yield server
    server.stop()


def test_it_answers_with_jetstream_and_room_for_what_the_journal_takes(nats: EmbeddedNats) -> None:
    greeting = information(nats)

    assert nats.url == f"nats://127.0.0.1:{greeting['port']}"
    assert greeting["jetstream"]
    assert greeting["max_payload"] > 8 * MIB


def test_the_server_of_the_system_takes_its_configuration_and_answers(tmp_path: Path) -> None:
    found = shutil.which("nats-server") or shutil.which("nats-server", path=SYSTEM_PROGRAMS)
    if found is None:
        pytest.skip("no nats-server of the system: switch this test on with `apt-get install nats-server`")
    server = EmbeddedNats(tmp_path, *free_ports(1), Path(found))
    try:
        server.start()
        assert information(server)["jetstream"]
    finally:
        server.stop()


def test_streams_keep_messages_of_8_mib_with_headers(nats: EmbeddedNats) -> None:
    body, headers = os.urandom(8 * MIB), {"region": "emea" * 1000}

    async def keep() -> tuple[bytes, dict[str, str]]:
        async with jetstream(nats) as streams:
            await streams.add_stream(name="large", subjects=["large"])
            await streams.publish("large", body, headers=headers, timeout=30)
            kept = await streams.get_msg("large", 1)
            return kept.data, kept.headers

    assert asyncio.run(keep()) == (body, headers)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_it_continues_where_it_stopped_or_was_killed(end: str, own_nats: EmbeddedNats) -> None:
    own_nats.start()
    asyncio.run(publish(own_nats, "orders", b"hello"))
    if end == "stop":
        own_nats.stop()
    else:
        kill(own_nats)

    own_nats.start()

    assert asyncio.run(first(own_nats, "orders")) == b"hello"


def test_one_that_was_killed_is_no_longer_alive(own_nats: EmbeddedNats) -> None:
    own_nats.start()
    assert own_nats.alive()

    kill(own_nats)

    assert not own_nats.alive()
    assert not accepts(*own_nats.ports.values())


def test_it_stops_in_order(own_nats: EmbeddedNats) -> None:
    own_nats.start()

    own_nats.stop()

    assert not own_nats.alive()
    assert own_nats.log.read_text().rstrip().endswith("Server Exiting..")


def test_all_it_writes_is_in_its_folder(own_nats: EmbeddedNats) -> None:
    own_nats.start()

    assert sorted(path.name for path in own_nats.folder.iterdir()) == ["jetstream", "log"]
    assert [path.name for path in own_nats.folder.parent.iterdir()] == ["nats"]


def test_it_listens_on_127_0_0_1_only(nats: EmbeddedNats) -> None:
    (port,) = nats.ports.values()

    # A server on all addresses would answer on each address of the loopback network.
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), timeout=5).close()


def test_it_dies_with_a_bridge_that_is_killed(tmp_path: Path, nats_server: Path) -> None:
    code = """
import sys
from pathlib import Path
from engine.embedded import EmbeddedNats, free_ports
server = EmbeddedNats(Path(sys.argv[1]), *free_ports(1), Path(sys.argv[2]))
server.start()
print(server.pid, flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", code, str(tmp_path), str(nats_server)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as bridge:
        assert bridge.stdout is not None
        server = int(bridge.stdout.readline())
        assert not gone(server)

        bridge.kill()

        until(lambda: gone(server))


def test_a_taken_port_is_told_with_its_holder_and_the_setting(
    nats: EmbeddedNats, nats_server: Path, tmp_path: Path
) -> None:
    (port,) = nats.ports.values()

    assert refusal(EmbeddedNats(tmp_path, port, nats_server)) == (
        f"port {port} is in use by nats-server (pid {nats.pid}): "
        "stop that program or set embedded.nats.port to another port"
    )


def test_an_early_end_is_told_in_one_line_with_its_cause_and_the_log(own_nats: EmbeddedNats) -> None:
    own_nats.folder.mkdir()
    (own_nats.folder / "jetstream").write_text("in the way")

    message = refusal(own_nats)

    assert message.startswith("embedded NATS ended at start: ")
    assert "storage directory" in message
    assert message.endswith(f"; see {own_nats.log}")


def refusal(server: EmbeddedNats) -> str:
    """The one line with which a start fails."""
    with pytest.raises(SetupError) as told:
        server.start()
    assert not server.alive()
    assert "\n" not in str(told.value)
    return str(told.value)


def kill(server: EmbeddedNats) -> None:
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    until(lambda: not server.alive())


def information(server: EmbeddedNats) -> Any:
    """What it tells each client first."""
    (port,) = server.ports.values()
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection, connection.makefile("rb") as lines:
        return json.loads(lines.readline().removeprefix(b"INFO "))


@asynccontextmanager
async def jetstream(server: EmbeddedNats) -> AsyncIterator[Any]:
    client = await pytest.importorskip("nats").connect(server.url, connect_timeout=10, allow_reconnect=False)
    try:
        yield client.jetstream()
    finally:
        await client.close()


async def publish(server: EmbeddedNats, name: str, body: bytes) -> None:
    """To a stream, which is made first."""
    async with jetstream(server) as streams:
        await streams.add_stream(name=name, subjects=[name])
        await streams.publish(name, body)


async def first(server: EmbeddedNats, stream: str) -> bytes | None:
    async with jetstream(server) as streams:
        body: bytes | None = (await streams.get_msg(stream, 1)).data
        return body
