"""The chart in `deploy/helm`: taken by Helm and Kubernetes, safe, and true about the bridge that it runs."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
import tomllib
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from prometheus_client import CollectorRegistry

from engine.supervision.parts import parts
from engine.telemetry.http import application
from engine.telemetry.http_section import HttpConfig
from engine.telemetry.metrics import METRICS
from engine.telemetry.status import StatusBoard
from routes import config as configuration
from tools.setup import HELM

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "deploy/helm"
CHART = EXAMPLES / "jms-bridge"
CASES = sorted(file.name.removesuffix("-values.yaml") for file in CHART.glob("ci/*.yaml"))
CUSTOM = json.loads(Path(__file__).with_name("custom_resources.json").read_text())
VERSION = "1.30"
"""Of Kubernetes; what is old enough for everybody's cluster."""
TOPOLOGIES = "topologies.order-counts.build=order_counts:build\n"
CONFIG = '--set-json=config="{}"'
VARIABLES = ("ARTEMIS_PASSWORD", "HTTP_TOKEN", "BRIDGE_SECRET", "POD_IP", "POD_NAME")
SECRET = "10.0.0.1" * 4


@dataclass(frozen=True, slots=True)
class Rendered:
    """Objects that the chart makes of the values of one case."""

    objects: tuple[dict[str, Any], ...]

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        return [each for each in self.objects if each["kind"] in kinds]

    def named(self, kind: str, end: str) -> dict[str, Any]:
        (found,) = (each for each in self.of(kind) if each["metadata"]["name"].endswith(end))
        return found

    @property
    def workloads(self) -> dict[str, dict[str, Any]]:
        """By the parts that they run."""
        return {only(each): each for each in self.of("StatefulSet", "Deployment")}

    @property
    def pods(self) -> Iterator[dict[str, Any]]:
        """The specification of each pod, executors included."""
        for each in self.workloads.values():
            yield each["spec"]["template"]["spec"]
        for each in self.of("ConfigMap"):
            if "executor.yaml" in each["data"]:
                yield yaml.safe_load(each["data"]["executor.yaml"])["spec"]

    @property
    def properties(self) -> str:
        (found,) = (each["data"] for each in self.of("ConfigMap") if "jms-bridge.properties" in each["data"])
        return str(found["jms-bridge.properties"])


def container(workload: Mapping[str, Any]) -> dict[str, Any]:
    (found,) = workload["spec"]["template"]["spec"]["containers"]
    return dict(found)


def only(workload: Mapping[str, Any]) -> str:
    return str(container(workload)["args"][-1])


def labels(workload: Mapping[str, Any]) -> dict[str, str]:
    return dict(workload["spec"]["template"]["metadata"]["labels"])


@pytest.fixture(scope="session")
def helm() -> Path:
    return HELM.existing() or pytest.skip(HELM.missing.read_text() if HELM.missing.exists() else "no helm")


@pytest.fixture(scope="session")
def with_topologies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's properties file with its topology."""
    file = tmp_path_factory.mktemp("helm") / "jms-bridge.properties"
    file.write_text((EXAMPLES / "orders.properties").read_text() + TOPOLOGIES)
    return file


@pytest.fixture(scope="session")
def rendered(helm: Path, with_topologies: Path) -> dict[str, Rendered]:
    """What the chart makes of each file of values."""
    return {case: of_case(helm, case, with_topologies) for case in CASES}


def of_case(helm: Path, case: str, with_topologies: Path) -> Rendered:
    file = CHART / f"ci/{case}-values.yaml"
    if "topologies" in yaml.safe_load(file.read_text()):
        module = rf"topologies.modules.order_counts\.py={EXAMPLES / 'order_counts.py'}"
        options = ["--set-file", f"config={with_topologies}", "--set-file", module]
    else:
        options = ["--set-file", f"config={EXAMPLES / 'orders.properties'}"]
    done = template(helm, "--values", str(file), *options)
    assert done.returncode == 0, done.stderr
    return Rendered(tuple(each for each in yaml.safe_load_all(done.stdout) if each))


def template(helm: Path, *options: str) -> subprocess.CompletedProcess[str]:
    given = ["--namespace", "messaging", "--kube-version", VERSION]
    command = [helm, "template", "jms-bridge", CHART, *given, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, rendered: dict[str, Rendered]) -> Rendered:
    return rendered[request.param]


def loaded(rendered: Rendered, folder: Path, monkeypatch: pytest.MonkeyPatch) -> configuration.Config:
    for name in VARIABLES:
        monkeypatch.setenv(name, SECRET)
    file = folder / "jms-bridge.properties"
    file.write_text(rendered.properties)
    return configuration.load(file)


def test_helm_finds_nothing_to_improve(helm: Path, with_topologies: Path) -> None:
    values = CHART / "ci/everything-values.yaml"
    given = ["--kube-version", VERSION, "--values", values, "--set-file", f"config={with_topologies}"]
    command = [helm, "lint", "--strict", CHART, *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_kubernetes_takes_all_objects(case: Rendered) -> None:
    for each in case.objects:
        if each["kind"] in CUSTOM:
            jsonschema.validate(each, CUSTOM[each["kind"]])
        else:
            kubernetes_validate.validate(each, VERSION, strict=True)
    for each in case.of("ConfigMap"):
        if "executor.yaml" in each["data"]:
            kubernetes_validate.validate(yaml.safe_load(each["data"]["executor.yaml"]), VERSION, strict=True)
    names = [(each["kind"], each["metadata"]["name"]) for each in case.objects]
    assert len(names) == len(set(names))


def test_all_pods_are_restricted_and_write_to_volumes_alone(case: Rendered) -> None:
    for pod in case.pods:
        (found,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert found["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        volumes = {each["name"]: each for each in pod["volumes"]}
        mounts = {each["name"]: each for each in found["volumeMounts"]}
        assert "emptyDir" in volumes["tmp"]
        assert mounts["tmp"]["mountPath"] == "/tmp"  # noqa: S108 # of the pod
        assert all("readOnly" in mounts[name] for name, each in volumes.items() if "emptyDir" not in each)


def test_the_image_is_run_as_its_user(rendered: dict[str, Rendered]) -> None:
    pod = rendered["minimal"].workloads["router"]["spec"]["template"]["spec"]
    (user,) = re.findall(r"^USER (\d+)$", (ROOT / "deploy/docker/Dockerfile").read_text(), re.MULTILINE)
    assert pod["securityContext"]["runAsUser"] == int(user)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert container(rendered["minimal"].workloads["router"])["image"] == f"jms-bridge:{project}"
    assert container(rendered["everything"].workloads["router"])["image"].startswith("jms-bridge@sha256:")


def test_all_pods_together_are_a_whole_bridge(case: Rendered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = loaded(case, tmp_path, monkeypatch)
    found = [part.name for part_of_it in case.workloads for part in parts(config, part_of_it)]
    assert sorted(found) == sorted(part.name for part in parts(config, None))


def test_pods_write_into_their_volumes_and_read_files_that_are_there(
    case: Rendered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = loaded(case, tmp_path, monkeypatch)
    for workload in case.workloads.values():
        mounts = {each["name"]: each["mountPath"] for each in container(workload)["volumeMounts"]}
        places = [str(config.embedded.data), str(config.router.checkpoint)]
        assert all(PurePosixPath(place).is_relative_to(mounts["state"]) for place in places if ":" not in place)
        command, _, file, option, _ = container(workload)["args"]
        assert (command, option) == ("run", "--only")
        assert file == f"{mounts['config']}/jms-bridge.properties"
        volumes = {each["name"] for each in workload["spec"]["template"]["spec"]["volumes"]}
        claims = {each["metadata"]["name"] for each in workload["spec"].get("volumeClaimTemplates", ())}
        assert volumes | claims == mounts.keys()
        assert not volumes & claims


def test_probes_ask_for_pages_that_there_are(case: Rendered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    http = loaded(case, tmp_path, monkeypatch).section(HttpConfig)
    pages = {route.path for route in application(StatusBoard([]), CollectorRegistry()).routes}  # type: ignore[attr-defined]
    for name, workload in case.workloads.items():
        found = container(workload)
        port = found["ports"][0]
        assert (port["name"], port["containerPort"], http.metrics_host) == ("metrics", http.metrics_port, "0.0.0.0")  # noqa: S104
        for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
            probe = found[kind]["httpGet"]
            assert probe["path"].partition("?")[0] in pages
            assert probe["port"] == port["name"]
        ready = "/ready?standby=ok" if name == "router" else "/ready"
        assert found["readinessProbe"]["httpGet"]["path"] == ready
        assert workload["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > 120
    assert http.host == "127.0.0.1"


def test_whatever_selects_pods_selects_those_it_means(case: Rendered) -> None:
    for workload in case.workloads.values():
        selected = workload["spec"]["selector"]["matchLabels"]
        assert selected.items() <= labels(workload).items()
        same = [other for other in case.workloads.values() if selected.items() <= labels(other).items()]
        assert same == [workload]
    for budget in case.of("PodDisruptionBudget"):
        selected = budget["spec"]["selector"]["matchLabels"]
        assert [only(each) for each in case.workloads.values() if selected.items() <= labels(each).items()] == [
            selected["app.kubernetes.io/component"]
        ]
    metrics = case.of("Service")[0]
    assert all(metrics["spec"]["selector"].items() <= labels(each).items() for each in case.workloads.values())
    for monitor in case.of("ServiceMonitor"):
        selected = monitor["spec"]["selector"]["matchLabels"]
        found = [each for each in case.of("Service") if selected.items() <= each["metadata"]["labels"].items()]
        assert found == [metrics]


def test_secrets_are_named_and_never_there(case: Rendered) -> None:
    assert not case.of("Secret")
    (secret,) = {ref["secretRef"]["name"] for each in case.workloads.values() for ref in container(each)["envFrom"]}
    steps = (ROOT / "docs/deployment.md").read_text()
    assert f"$ kubectl create secret generic {secret} --namespace messaging --from-env-file=secrets.env\n" in steps
    token = [name for name, each in case.workloads.items() if driver(each)]
    expected = {"router", "topologies"} & case.workloads.keys() if case.of("Role") else set()
    assert set(token) == expected


def driver(workload: Mapping[str, Any]) -> bool:
    return bool(workload["spec"]["template"]["spec"]["automountServiceAccountToken"])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--set", "router.replcas=1"], "'replcas' not allowed"),
        (["--set", "sources.autoscaling.maxReplicas=0"], "/sources/autoscaling/maxReplicas"),
        (["--set", "password=hunter2"], "'password' not allowed"),
        ([CONFIG.format("")], "--set-file config=jms-bridge.properties"),
        (["--set", "sinks.autoscaling.enabled=true"], "set serviceMonitor.enabled to true"),
        (["--set", "topologies.enabled=true"], "config has no topologies"),
        ([CONFIG.format("source.a.type=amqp")], "config has no sinks"),
        ([CONFIG.format(r"source.a.type=amqp\nsink.b.type=amqp")], "add bridge.secret=${env:BRIDGE_SECRET}"),
        ([CONFIG.format("http.token = hunter2")], "config has a secret in plain text in http.token"),
        ([CONFIG.format("embedded.data=/data")], "config sets embedded.data, which the chart sets"),
    ],
)
def test_values_that_make_no_bridge_are_refused(helm: Path, options: list[str], told: str) -> None:
    given = [] if options[0].startswith("--set-json") else [f"--set-file=config={EXAMPLES / 'orders.properties'}"]
    done = template(helm, *given, *options)
    assert done.returncode != 0
    assert told in done.stderr
    assert "hunter2" not in done.stderr


def test_routers_stand_by_each_with_a_checkpoint_of_its_own(rendered: dict[str, Rendered]) -> None:
    workload = rendered["standby"].workloads["router"]
    assert (workload["spec"]["replicas"], workload["spec"]["podManagementPolicy"]) == (3, "Parallel")
    (claim,) = workload["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["storageClassName"] == "fast"
    mounts = {each["name"]: each["mountPath"] for each in container(workload)["volumeMounts"]}
    assert mounts["secrets"] == "/etc/jms-bridge-secrets"


def test_a_changed_file_starts_pods_anew_unless_the_bridge_reads_it_itself(rendered: dict[str, Rendered]) -> None:
    for name, itself in (("standby", True), ("minimal", False)):
        (pod,) = (rendered[name].workloads["router"]["spec"]["template"],)
        assert ("reload.watch=true\n" in rendered[name].properties) == itself
        assert ("checksum/config" not in pod["metadata"]["annotations"]) == itself


def test_sources_and_sinks_have_as_many_pods_as_wanted_and_listeners_a_service(rendered: dict[str, Rendered]) -> None:
    found = rendered["scaled"]
    assert {name: each["spec"]["replicas"] for name, each in found.workloads.items()} == {
        "router": 2,
        "sources": 3,
        "sinks": 2,
    }
    service = found.named("Service", "-sources")
    (port,) = service["spec"]["ports"]
    assert {"name": port["targetPort"], "containerPort": 5672} in container(found.workloads["sources"])["ports"]
    (rule,) = found.named("NetworkPolicy", "-sources")["spec"]["ingress"]
    assert (rule["ports"][0]["port"], rule["from"]) == ("amqp", [{"ipBlock": {"cidr": "10.0.0.0/8"}}])


def test_other_machines_reach_metrics_alone(rendered: dict[str, Rendered]) -> None:
    (policy,) = rendered["minimal"].of("NetworkPolicy")
    (rule,) = policy["spec"]["ingress"]
    (served,) = rendered["minimal"].of("Service")
    assert [port["port"] for port in rule["ports"]] == [served["spec"]["ports"][0]["targetPort"]] == ["metrics"]
    assert rendered["everything"].named("NetworkPolicy", "orders")["spec"]["policyTypes"] == ["Ingress", "Egress"]


@pytest.mark.parametrize("name", ["executors", "everything"])
def test_executors_find_their_driver_and_have_the_bridges_spark(
    name: str, rendered: dict[str, Rendered], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = rendered[name]
    spark = loaded(case, tmp_path, monkeypatch).spark
    assert spark["spark.kubernetes.container.image"].endswith(f":{version('pyspark')}")
    assert spark["spark.kubernetes.namespace"] == "messaging"
    policy = case.named("NetworkPolicy", "-executors")
    (source,) = policy["spec"]["ingress"][0]["from"]
    template = yaml.safe_load(case.named("ConfigMap", "-executor")["data"]["executor.yaml"])
    assert source["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    for workload in filter(driver, case.workloads.values()):
        ports = {each["name"]: each["containerPort"] for each in container(workload)["ports"]}
        assert ports["driver"] == int(spark["spark.driver.port"])
        assert ports["blocks"] == int(spark["spark.driver.blockManager.port"])
        assert {each["port"] for each in policy["spec"]["ingress"][0]["ports"]} == {"driver", "blocks"}
        mounts = {each["name"]: each["mountPath"] for each in container(workload)["volumeMounts"]}
        assert spark["spark.kubernetes.executor.podTemplateFile"] == f"{mounts['executor']}/executor.yaml"
    (subject,) = case.of("RoleBinding")[0]["subjects"]
    pod = case.workloads["router"]["spec"]["template"]["spec"]
    assert (subject["name"], subject["namespace"]) == (pod["serviceAccountName"], "messaging")


def test_state_in_an_object_store_needs_no_volume(rendered: dict[str, Rendered]) -> None:
    assert not any("volumeClaimTemplates" in each["spec"] for each in rendered["object-store"].workloads.values())
    assert "router.checkpoint=s3a://bucket/jms-bridge/orders\n" in rendered["object-store"].properties
    assert "topologies.state=s3a://bucket/jms-bridge/topologies\n" in rendered["object-store"].properties


def test_topologies_run_in_one_pod_that_has_their_modules(
    rendered: dict[str, Rendered], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = rendered["object-store"]
    config = loaded(case, tmp_path, monkeypatch)
    workload = case.workloads["topologies"]
    assert workload["spec"]["replicas"] == 1
    mounts = {each["name"]: each["mountPath"] for each in container(workload)["volumeMounts"]}
    assert container(workload)["env"] == [{"name": "PYTHONPATH", "value": mounts["modules"]}]
    modules = case.named("ConfigMap", "-topologies")["data"]
    assert {f"{topology.build.partition(':')[0]}.py" for topology in config.topologies} == modules.keys()


def test_the_topology_of_the_example_reads_what_its_routes_publish(
    rendered: dict[str, Rendered], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = loaded(rendered["object-store"], tmp_path, monkeypatch)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    targets = {str(route.targets[0].address) for route in config.routes}
    for topology in config.topologies:
        module, _, function = topology.build.partition(":")
        built = getattr(import_module(module), function)()
        assert {source.topic for source in built.sources} <= targets


def test_pods_are_scaled_by_figures_that_there_are(rendered: dict[str, Rendered]) -> None:
    case = rendered["autoscaling"]
    known = {metric.name: set(metric.labels) for metric in METRICS}
    (endpoint,) = case.of("ServiceMonitor")[0]["spec"]["endpoints"]
    given = {each["targetLabel"]: each["replacement"] for each in endpoint["relabelings"]}
    assert given == {"job": "jms-bridge", "bridge": "messaging/jms-bridge"}
    scaled = {each["spec"]["scaleTargetRef"]["name"]: each["spec"] for each in case.of("ScaledObject")}
    assert scaled.keys() == {case.workloads[name]["metadata"]["name"] for name in ("sources", "sinks")}
    for name, spec in scaled.items():
        (query,) = (each["metadata"]["query"] for each in spec["triggers"])
        (metric,) = re.findall(r"jmsbridge_\w+", query)
        assert metric in known
        assert set(re.findall(r"by \((\w+)\)", query)) <= known[metric]
        assert f'{{bridge="{given["bridge"]}"}}' in query
        assert spec["minReplicaCount"] >= 1
        assert "replicas" not in case.named("Deployment", name)["spec"]


def test_alerts_and_dashboards_are_those_of_grafana(rendered: dict[str, Rendered]) -> None:
    case = rendered["everything"]
    (rule,) = case.of("PrometheusRule")
    text = (ROOT / "grafana/rules/jms-bridge.yml").read_text()
    assert rule["spec"] == yaml.safe_load(text.replace("docs/runbooks.md", "https://wiki.example/runbooks"))
    boards = [each for each in case.of("ConfigMap") if "grafana_dashboard" in each["metadata"]["labels"]]
    found = {file: json.loads(text) for each in boards for file, text in each["data"].items()}
    expected = (ROOT / "grafana/dashboards").glob("*.json")
    assert found == {f"jms-bridge-{file.name}": json.loads(file.read_text()) for file in expected}


def test_a_package_has_alerts_and_dashboards_and_no_values_of_tests(helm: Path, tmp_path: Path) -> None:
    subprocess.run([helm, "package", CHART, "--destination", tmp_path], capture_output=True, check=True)
    (package,) = tmp_path.iterdir()
    with tarfile.open(package) as archive:
        names = archive.getnames()
        rules = archive.extractfile("jms-bridge/files/rules.yml")
        assert rules is not None
        assert rules.read() == (ROOT / "grafana/rules/jms-bridge.yml").read_bytes()
    assert "jms-bridge/files/dashboards/overview.json" in names
    assert not [name for name in names if "/ci/" in name]
