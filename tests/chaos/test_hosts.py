"""One bridge on many hosts: its router beside the brokers, a source and a sink each on a host of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.chaos.brokers_on_network import KAFKA_PORT, STOMP_PORT
from tests.chaos.network import Network
from tests.integration.bridge_process import ROOT, Bridge, descendants, wait

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.skipif(
        not Network.is_possible(),
        reason="needs ip, unshare and nsenter, and a kernel that gives users namespaces with networks",
    ),
    pytest.mark.kills,
    pytest.mark.timeout(300),
]

HUB, EDGE_1, EDGE_2, EDGE_3 = "hub", "edge-1", "edge-2", "edge-3"
PORT = 8480
PROPERTIES = """\
bridge.id=edges
embedded=off
kafka.bootstrap.servers={hub}:{kafka}
journal.replication=1
routing.create-topics=true
http.address=0.0.0.0:{port}
http.peers={peers}
http.token=told-to-all-hosts
http.insecure=true
source.orders.type=stomp
source.orders.url=stomp://{hub}:{stomp}
source.orders.destinations=queue:in
source.orders.workers=2
sink.orders.type=stomp
sink.orders.url=stomp://{hub}:{stomp}
routes.orders.in.include=msg.address==in
routes.orders.out.topic=orders:queue/out
"""
PAGE = """\
import sys, urllib.request
request = urllib.request.Request(sys.argv[1], headers={"Authorization": "Bearer told-to-all-hosts"})
print(urllib.request.urlopen(request, timeout=10).read().decode())
"""


class Hosts:
    """The hosts, each with a folder of its own and the same file in it."""

    def __init__(self, folder: Path, network: Network) -> None:
        self.network = network
        addresses = network.addresses
        peers = ", ".join(f"{address}:{PORT}" for address in addresses.values())
        text = PROPERTIES.format(hub=addresses[HUB], kafka=KAFKA_PORT, stomp=STOMP_PORT, port=PORT, peers=peers)
        self.bridges = {}
        for host in addresses:
            file = folder / host / "jms-bridge.properties"
            file.parent.mkdir()
            file.write_text(text)
            self.bridges[host] = Bridge(file, network.launcher(host))

    def address(self, host: str) -> str:
        return f"{self.network.addresses[host]}:{PORT}"

    def command(self, host: str, *arguments: str) -> str:
        done = self.network.python(host, "-m", "engine", *arguments, "-c", str(self.bridges[host].file))
        # `status` exits with 1 as long as a host is missing.
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    def status(self, host: str) -> Any:
        return json.loads(self.command(host, "status", "--json"))

    def peers(self, host: str) -> dict[str, dict[str, str]]:
        """By address of each peer of a host, the states of its parts."""
        found = self.status(host)["peers"]
        return {peer["address"]: {part["component"]: part["state"] for part in peer["parts"]} for peer in found}

    def wait_ready(self, *hosts: str) -> None:
        """Waits for them; `status` exits without output while no bridge answers."""
        for host in hosts:
            bridge = self.bridges[host]

            def ready(host: str = host, bridge: Bridge = bridge) -> bool:
                assert bridge.running, bridge.output
                shown = self.network.python(host, "-m", "engine", "status", "--json", "-c", str(bridge.file)).stdout
                return bool(shown) and json.loads(shown)["ready"]

            wait(ready, lambda bridge=bridge: bridge.output, 120)  # type: ignore[misc]

    def send(self, body: str, count: int) -> None:
        self.command(HUB, "send", "queue:in", body, "--count", str(count))

    def received(self, count: int) -> Counter[str]:
        """The bodies of so many messages that came out."""
        lines = self.command(HUB, "receive", "queue:out", "--json", "--count", str(count), "--timeout", "30")
        return Counter(json.loads(line)["body"] for line in lines.splitlines())


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    with ExitStack() as stack:
        network = stack.enter_context(Network(HUB, EDGE_1, EDGE_2, EDGE_3))
        hub = network.addresses[HUB]
        command = [*network.launcher(HUB), sys.executable, "-m", "tests.chaos.brokers_on_network", str(tmp_path), hub]
        brokers = stack.enter_context(
            subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        assert brokers.stdin
        assert brokers.stdout
        stack.callback(brokers.stdin.close)
        assert brokers.stdout.readline() == "up\n"
        found = Hosts(tmp_path, network)
        for bridge in found.bridges.values():
            stack.callback(bridge.end)
        yield found


def test_a_bridge_on_many_hosts_has_one_page_grows_by_a_host_and_goes_on_without_one(hosts: Hosts) -> None:
    hosts.bridges[HUB].start("--only", "router")
    hosts.bridges[EDGE_1].start("--only", "source:orders")
    hosts.bridges[EDGE_2].start("--only", "sink:orders")
    hosts.wait_ready(HUB, EDGE_1, EDGE_2)
    hosts.send("first", 20)
    assert hosts.received(20) == {"first": 20}

    sources = {"source:orders": "ready", "source:orders/2": "ready"}
    peers = hosts.peers(HUB)
    assert peers.pop(hosts.address(EDGE_3)) == {}
    assert peers == {hosts.address(EDGE_1): sources, hosts.address(EDGE_2): {"sink:orders": "ready"}}

    hosts.bridges[EDGE_3].start("--only", "source:orders")
    hosts.wait_ready(EDGE_3)
    wait(lambda: hosts.peers(HUB)[hosts.address(EDGE_3)] == sources, seconds=30)
    # Any host shows them all.
    page = hosts.network.python(EDGE_2, "-c", PAGE, f"http://{hosts.address(EDGE_2)}/").stdout
    assert "All parts are ready" in page
    assert page.count("<code>source:orders/2</code>") == 2
    assert all(hosts.address(host) in page for host in (HUB, EDGE_1, EDGE_3))
    assert hosts.address(EDGE_2) not in page

    kill(hosts.bridges[EDGE_1])
    gone = dict.fromkeys(sources, "unreachable")
    wait(lambda: hosts.peers(HUB)[hosts.address(EDGE_1)] == gone, seconds=30)
    hosts.send("second", 20)
    assert hosts.received(20) == {"second": 20}
    status = hosts.status(HUB)
    assert status["ready"]
    silent = {peer["address"]: peer["silent_seconds"] for peer in status["peers"] if not peer["reachable"]}
    assert list(silent) == [hosts.address(EDGE_1)]
    assert silent[hosts.address(EDGE_1)] > 5
    assert "unreachable" in hosts.network.python(EDGE_3, "-c", PAGE, f"http://{hosts.address(EDGE_3)}/").stdout


def kill(bridge: Bridge) -> None:
    """As an outage of its machine does, with all that it started."""
    assert bridge.process
    for pid in {bridge.process.pid, *descendants(bridge.process.pid)}:
        os.kill(pid, signal.SIGKILL)
    bridge.process.wait()
