"""The pods of the chart, started as processes: command lines, files, variables and probes as the manifests have them.

There is no Kubernetes here. What it would lay out for each pod is laid out in a folder, and the paths and the port that
pods have to themselves are replaced by those of the folder.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from engine.embedded import free_ports
from tests.integration.bridge_process import Bridge, read, wait
from tests.waiting import patience
from tools.setup import HELM

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.embedded import EmbeddedArtemis, EmbeddedKafka
    from tests.conftest import TopicFactory

ROOT = Path(__file__).parents[3]
CHART = ROOT / "deploy/helm/jms-bridge"
SECRET = {name: name.lower() * 4 for name in ("ARTEMIS_PASSWORD", "BRIDGE_SECRET", "HTTP_TOKEN")}
"""Content of the Secret that the steps in docs/deployment.md make."""

pytestmark = pytest.mark.further_systems


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod as a process."""

    bridge: Bridge
    container: Mapping[str, Any]
    grace_seconds: float

    def answers(self, probe: str) -> bool:
        """Whether a probe of the container succeeds now."""
        asked = self.container[probe]["httpGet"]
        (port,) = (each["name"] for each in self.container["ports"] if each["name"] == asked["port"])
        assert port == "metrics"
        return 200 <= self.bridge.get(asked["path"])[0] < 400

    def wait_for(self, probe: str) -> None:
        """Waits until a probe succeeds, at most as long as Kubernetes does."""
        given = self.container[probe]

        def succeeds() -> bool:
            assert self.bridge.running, self.bridge.output
            return self.answers(probe)

        seconds = max(60, given["periodSeconds"] * given.get("failureThreshold", 3))
        wait(succeeds, lambda: self.bridge.output[-3000:], seconds)

    def stop(self) -> int:
        """The exit code after SIGTERM, within the pod's grace period."""
        assert self.bridge.process
        self.bridge.process.terminate()
        return self.bridge.process.wait(patience(self.grace_seconds))


class Release:
    """Pods of a release of the chart."""

    def __init__(self, folder: Path, config: str) -> None:
        helm = HELM.existing() or pytest.skip(HELM.missing.read_text() if HELM.missing.exists() else "no helm")
        self._folder = folder
        file = folder / "config.properties"
        file.write_text(config)
        given = ["--namespace", "messaging", "--kube-version", "1.30", "--set-file", f"config={file}"]
        command = [helm, "template", "jms-bridge", CHART, *given]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        objects = [each for each in yaml.safe_load_all(done.stdout) if each]
        self._maps = {each["metadata"]["name"]: each["data"] for each in objects if each["kind"] == "ConfigMap"}
        self._workloads = [each for each in objects if each["kind"] in ("StatefulSet", "Deployment")]
        self.pods: dict[str, Pod] = {}

    def start(self) -> None:
        """Starts all pods."""
        for workload in self._workloads:
            name, count = workload["metadata"]["name"].removeprefix("jms-bridge-"), workload["spec"]["replicas"]
            for number in range(count):
                self.pods[f"{name}-{number}"] = self._started(f"{name}-{number}", workload["spec"]["template"]["spec"])

    def _started(self, name: str, pod: Mapping[str, Any]) -> Pod:
        (container,) = pod["containers"]
        own = Ports(*free_ports(2))
        places = {}
        for each in container["volumeMounts"]:
            places[each["mountPath"]] = place = self._folder / name / each["name"]
            place.mkdir(parents=True)
        volumes = {each["name"]: each for each in pod["volumes"]}
        for each in container["volumeMounts"]:
            source = volumes.get(each["name"], {}).get("configMap")
            for file, text in self._maps[source["name"]].items() if source else ():
                (places[each["mountPath"]] / file).write_text(replaced(text, places, own))
        command, option, path, *others = container["args"]
        assert (command, option) == ("run", "-c")
        variables = {each["name"]: each["value"] for each in container.get("env", ())}
        assert {each["secretRef"]["name"] for each in container["envFrom"]} == {"jms-bridge"}
        bridge = Bridge(
            Path(replaced(path, places, own)), environment={**SECRET, **variables, "JMS_BRIDGE_LOG": "json"}
        )
        # Probes ask for the port of metrics and health.
        bridge.settings["http.address"] = f"127.0.0.1:{own.metrics}"
        bridge.start(*others)
        return Pod(bridge, container, pod["terminationGracePeriodSeconds"])

    def end(self) -> None:
        for pod in self.pods.values():
            pod.bridge.end()


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports of a process in the place of those that each pod has to itself."""

    page: int
    metrics: int


def replaced(text: str, places: Mapping[str, Path], ports: Ports) -> str:
    """A text of the pod with paths and ports of a process."""
    for path, place in places.items():
        if path != "/tmp":  # noqa: S108 # nothing in the pod's files names it
            text = text.replace(path, str(place))
    text = text.replace("127.0.0.1:8480", f"127.0.0.1:{ports.page}")
    return text.replace("0.0.0.0:8481", f"127.0.0.1:{ports.metrics}")


@pytest.fixture
def release(kafka: EmbeddedKafka, artemis: EmbeddedArtemis, topic: TopicFactory, tmp_path: Path) -> Iterator[Release]:
    """A release of the example `orders.properties`, with its names and addresses replaced by ours."""
    routed = topic("chart")
    text = (ROOT / "deploy/helm/orders.properties").read_text()
    for found, own in {
        "orders-bridge": f"{routed}-bridge",
        "kafka:9092": kafka.bootstrap,
        "amqp://artemis:5672": artemis.amqp_url,
        "orders.large": routed,
        "queue:orders": f"queue:{routed}",
        "msg.address==orders": f"msg.address = '{routed}'",
        "queue/orders.small": f"queue/{routed}.small",
    }.items():
        assert found in text
        text = text.replace(found, own)
    made = Release(tmp_path, f"{text}journal.topic={routed}.journal\nrouting.create-topics=true\n")
    yield made
    made.end()


def test_the_pods_of_a_release_are_ready_carry_messages_and_end_in_order(
    release: Release, kafka: EmbeddedKafka, artemis: EmbeddedArtemis
) -> None:
    release.start()
    assert sorted(release.pods) == ["router-0", "router-1", "sinks-0", "sources-0"]
    for pod in release.pods.values():
        pod.wait_for("startupProbe")
    for pod in release.pods.values():
        pod.wait_for("readinessProbe")
        assert pod.answers("livenessProbe")
    leading = [name for name, pod in release.pods.items() if pod.bridge.metric("jmsbridge_leader")]
    assert len([name for name in leading if name.startswith("router")]) == 1

    sources = release.pods["sources-0"].bridge
    routed = sources.settings["journal.topic"].removesuffix(".journal")
    sources.settings["embedded.stomp.port"] = artemis.stomp_url.rpartition(":")[2]
    sources.send([1, 2, 3], routed, amount="5000")
    wait(lambda: len(read(kafka.bootstrap, routed)) == 3, lambda: sources.output[-3000:])
    sources.send([4], routed, amount="1")
    sinks = release.pods["sinks-0"].bridge
    wait(lambda: sinks.metric("jmsbridge_sink_delivered_messages_total") == 1, lambda: sinks.get("/metrics")[1][-3000:])

    # The leader first, as a rolling update may: the one that stands by takes over.
    for name, pod in sorted(release.pods.items(), key=lambda each: each[0] not in leading):
        assert pod.stop() == 0, (name, pod.bridge.output[-3000:])
