"""What is in `deploy/`: taken by the tools it is for, and true about the bridge that it runs."""

from __future__ import annotations

import io
import re
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from dockerfile_parse import DockerfileParser
from prometheus_client import CollectorRegistry

from engine.errors import HardFailureError, SetupError, SoftFailureError, UsageError
from engine.supervision.parts import parts
from engine.telemetry.http import application
from engine.telemetry.http_section import HttpConfig
from engine.telemetry.status import StatusBoard
from routes import config as configuration
from routes.errors import ConfigurationError

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy/kubernetes"
KUSTOMIZATION = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
MANIFESTS: dict[str, dict[str, Any]] = {
    file.name: yaml.safe_load(file.read_text())
    for file in sorted(KUBERNETES.glob("*.yaml"))
    if file.name != "kustomization.yaml"
}
EXECUTORS = ROOT / "deploy/kubernetes-executors"
TOPOLOGIES = ROOT / "deploy/kubernetes-topologies"
WORKLOADS = [name for name, manifest in MANIFESTS.items() if "template" in manifest["spec"]]
VERSION = "1.30"
"""Of Kubernetes; what is old enough for everybody's cluster."""


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> configuration.Config:
    for name in ("ARTEMIS_PASSWORD", "HTTP_TOKEN"):
        monkeypatch.setenv(name, "x")
    return configuration.load(KUBERNETES / "jms-bridge.properties")


@pytest.fixture
def steps() -> str:
    """What a user is told to do."""
    return (ROOT / "docs/deployment.md").read_text()


@pytest.fixture
def installed(tmp_path: Path, steps: str) -> configuration.Config:
    """That of the file which the steps for systemd and Docker make."""
    assert "cat deploy/folders.properties >> /etc/jms-bridge/jms-bridge.properties\n" in steps
    assert (
        "cat jms-bridge.properties deploy/folders.properties deploy/docker/page.properties > docker.properties\n"
        in steps
    )
    file = tmp_path / "jms-bridge.properties"
    template = ROOT / "engine/cli/templates" / file.name
    file.write_text(template.read_text() + (ROOT / "deploy/folders.properties").read_text())
    return configuration.load(file)


def container(name: str) -> dict[str, Any]:
    (found,) = MANIFESTS[name]["spec"]["template"]["spec"]["containers"]
    return dict(found)


def test_an_image_is_built_from_what_a_wheel_needs_and_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    wanted = {pattern.removeprefix("!") for pattern in patterns if pattern.startswith("!")}
    assert patterns[0] == "*"
    assert not {name for name in wanted if "properties" in name or name in ("var", "deploy", "dist", ".git", "tests")}
    pinned = ["requirements-build.txt", "requirements.txt", "pyproject.toml", "pom.xml", "Makefile", "hatch_build.py"]
    assert {*pinned, "engine", "routes", "jvm", "tools", "README.md"} <= wanted
    assert not [name for name in wanted if not (ROOT / name).exists()]


def dockerfile() -> DockerfileParser:
    return DockerfileParser(fileobj=io.BytesIO((ROOT / "deploy/docker/Dockerfile").read_bytes()))


@pytest.mark.parametrize("name", MANIFESTS)
def test_kubernetes_takes_a_manifest(name: str) -> None:
    kubernetes_validate.validate(MANIFESTS[name], VERSION, strict=True)


def test_the_kustomization_has_all_of_them() -> None:
    assert sorted(KUSTOMIZATION["resources"]) == sorted(MANIFESTS)
    (made,) = KUSTOMIZATION["configMapGenerator"]
    assert [(KUBERNETES / name).is_file() for name in made["files"]] == [True]


def test_kubernetes_takes_the_manifests_for_executors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    overlay = yaml.safe_load((EXECUTORS / "kustomization.yaml").read_text())
    added = [name for name in overlay["resources"] if name != "../kubernetes"]
    (made,) = overlay["configMapGenerator"]
    for name in (*added, *made["files"]):
        kubernetes_validate.validate(yaml.safe_load((EXECUTORS / name).read_text()), VERSION, strict=True)
    patch = yaml.safe_load((EXECUTORS / "router.yaml").read_text())
    assert patch["metadata"]["name"] == MANIFESTS["router.yaml"]["metadata"]["name"]
    (added_to,) = patch["spec"]["template"]["spec"]["containers"]
    assert added_to["name"] == container("router.yaml")["name"]
    (mount,) = added_to["volumeMounts"]

    for name in ("ARTEMIS_PASSWORD", "HTTP_TOKEN", "POD_NAME", "POD_IP"):
        monkeypatch.setenv(name, "10.0.0.1")
    file = tmp_path / "jms-bridge.properties"
    lines = [(folder / name).read_text() for folder, name in ((KUBERNETES, file.name), (EXECUTORS, "spark.properties"))]
    file.write_text("".join(lines))
    found = configuration.load(file).spark
    assert found["spark.kubernetes.executor.podTemplateFile"] == f"{mount['mountPath']}/{made['files'][0]}"
    assert found["spark.kubernetes.container.image"].endswith(f":{version('pyspark')}")
    ports = [each["containerPort"] for each in added_to["ports"]]
    assert ports == [int(found["spark.driver.port"]), int(found["spark.driver.blockManager.port"])]


@pytest.fixture
def with_topologies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> configuration.Config:
    """The configuration of the manifests with topologies."""
    for name in ("ARTEMIS_PASSWORD", "HTTP_TOKEN"):
        monkeypatch.setenv(name, "x")
    file = tmp_path / "jms-bridge.properties"
    parts_of_it = (KUBERNETES / file.name, TOPOLOGIES / "topologies.properties")
    file.write_text("".join(each.read_text() for each in parts_of_it))
    return configuration.load(file)


def test_topologies_run_in_one_pod_with_their_modules_and_their_state(with_topologies: configuration.Config) -> None:
    overlay = yaml.safe_load((TOPOLOGIES / "kustomization.yaml").read_text())
    assert overlay["resources"] == ["../kubernetes", "topologies.yaml"]
    assert (overlay["namespace"], overlay["images"]) == (KUSTOMIZATION["namespace"], KUSTOMIZATION["images"])
    manifest = yaml.safe_load((TOPOLOGIES / "topologies.yaml").read_text())
    kubernetes_validate.validate(manifest, VERSION, strict=True)
    assert (manifest["kind"], manifest["spec"]["replicas"]) == ("StatefulSet", 1)
    pod = manifest["spec"]["template"]["spec"]
    (found,) = pod["containers"]
    mounts = {each["name"]: each["mountPath"] for each in found["volumeMounts"]}

    elsewhere = {part.name for name in WORKLOADS for part in parts(with_topologies, container(name)["args"][-1])}
    here = {part.name for part in parts(with_topologies, found["args"][-1])}
    assert here | elsewhere == {part.name for part in parts(with_topologies, None)}
    assert not here & elsewhere

    assert all(folder.is_relative_to(mounts["state"]) for folder in written(with_topologies))
    assert [claim["metadata"]["name"] for claim in manifest["spec"]["volumeClaimTemplates"]] == ["state"]
    assert found["env"] == [{"name": "PYTHONPATH", "value": mounts["topologies"]}]
    (made,) = overlay["configMapGenerator"]
    (volume,) = (each for each in pod["volumes"] if each["name"] == "topologies")
    assert volume["configMap"]["name"] == made["name"]
    modules = {topology.build.partition(":")[0] for topology in with_topologies.topologies}
    assert modules <= {name.removesuffix(".py") for name in made["files"]}
    assert all((TOPOLOGIES / name).is_file() for name in made["files"])

    router = MANIFESTS["router.yaml"]["spec"]["template"]["spec"]
    same = ("securityContext", "terminationGracePeriodSeconds", "automountServiceAccountToken")
    assert {key: pod[key] for key in same} == {key: router[key] for key in same}
    assert {found[key]["httpGet"]["path"] for key in ("livenessProbe", "readinessProbe")} == {"/health", "/ready"}


def test_the_topology_of_the_manifests_reads_what_their_routes_publish(
    with_topologies: configuration.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(TOPOLOGIES))
    targets = {str(route.targets[0].address) for route in with_topologies.routes}
    for topology in with_topologies.topologies:
        module, _, function = topology.build.partition(":")
        built = getattr(import_module(module), function)()
        assert {source.topic for source in built.sources} <= targets


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_pod_runs_a_part_that_there_is(name: str, config: configuration.Config) -> None:
    command, _, file, only, part = container(name)["args"]
    assert (command, only) == ("run", "--only")
    assert parts(config, part)
    (mount,) = [each for each in container(name)["volumeMounts"] if each["name"] == "config"]
    assert file == f"{mount['mountPath']}/{config.path.name}"


def test_all_pods_together_are_a_whole_bridge(config: configuration.Config) -> None:
    found = {part.name for name in WORKLOADS for part in parts(config, container(name)["args"][-1])}
    assert found == {part.name for part in parts(config, None)}


def test_the_steps_make_what_the_pods_ask_for(steps: str) -> None:
    namespace = KUSTOMIZATION["namespace"]
    (secret,) = {ref["secretRef"]["name"] for name in WORKLOADS for ref in container(name)["envFrom"]}
    made, then, _ = steps.partition("$ kubectl apply -k deploy/kubernetes\n")
    assert f"$ kubectl create namespace {namespace}\n" in made
    assert f"$ kubectl create secret generic {secret} --namespace {namespace} " in made
    assert then


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_pod_writes_into_its_volume(name: str, config: configuration.Config) -> None:
    (mount,) = [each for each in container(name)["volumeMounts"] if each["name"] == "state"]
    assert all(folder.is_relative_to(mount["mountPath"]) for folder in written(config))


@pytest.mark.parametrize("name", WORKLOADS)
def test_probes_ask_for_pages_that_there_are(name: str, config: configuration.Config) -> None:
    pages = {route.path for route in application(StatusBoard([]), CollectorRegistry()).routes}  # type: ignore[attr-defined]
    found = container(name)
    (port,) = found["ports"]
    assert port["containerPort"] == config.section(HttpConfig).metrics_port
    assert config.section(HttpConfig).metrics_host == "0.0.0.0"  # noqa: S104 # of its pod
    for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
        probe = found[kind]["httpGet"]
        assert probe["path"].partition("?")[0] in pages
        assert probe["port"] == port["name"]


def test_pages_with_messages_want_a_login_from_the_secret_and_other_machines_reach_metrics_alone(
    config: configuration.Config, steps: str
) -> None:
    assert (config.section(HttpConfig).host, config.section(HttpConfig).token, config.section(HttpConfig).password) == (
        "127.0.0.1",
        "x",
        "x",
    )
    assert 'HTTP_TOKEN=$(openssl rand -hex 32)" >> secrets.env\n' in steps
    (admitted,) = MANIFESTS["networkpolicy.yaml"]["spec"]["ingress"]
    (served,) = MANIFESTS["service.yaml"]["spec"]["ports"]
    assert [port["port"] for port in admitted["ports"]] == [served["targetPort"]] == ["metrics"]
    for name in WORKLOADS:
        annotations = MANIFESTS[name]["spec"]["template"]["metadata"]["annotations"]
        assert annotations["prometheus.io/port"] == str(config.section(HttpConfig).metrics_port)
        assert annotations["prometheus.io/scrape"] == "true"


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_pod_lives_as_an_ordinary_user_and_has_time_to_end(name: str) -> None:
    pod = MANIFESTS[name]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["terminationGracePeriodSeconds"] > 120
    assert not container(name)["securityContext"]["allowPrivilegeEscalation"]


def test_the_image_runs_the_installed_command_as_an_ordinary_user() -> None:
    found = dockerfile()
    last = {each["instruction"]: each["value"] for each in found.structure}
    assert yaml.safe_load(last["ENTRYPOINT"]) == ["jms-bridge"]
    assert yaml.safe_load(last["CMD"])[:2] == ["run", "-c"]
    assert last["USER"] == "10001"
    assert all(pod["spec"]["template"]["spec"]["securityContext"]["runAsUser"] == 10001 for pod in workloads())
    assert last["EXPOSE"] == str(8480)


def test_a_container_has_a_page_that_its_machine_can_reach_and_a_login_protects(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, steps: str
) -> None:
    (published,) = re.findall(r"docker run .*-p (\S+) -e HTTP_PASSWORD ", steps)
    address, outside, inside = published.split(":")
    assert address == "127.0.0.1"
    monkeypatch.setenv("HTTP_PASSWORD", "geheim")
    file = tmp_path / "jms-bridge.properties"
    shipped = (ROOT / "engine/cli/templates" / file.name, ROOT / "deploy/folders.properties")
    file.write_text("".join(each.read_text() for each in (*shipped, ROOT / "deploy/docker/page.properties")))
    http = configuration.load(file).http
    assert (http.host, http.password) == ("0.0.0.0", "geheim")  # noqa: S104 # of the container
    last = {each["instruction"]: each["value"] for each in dockerfile().structure}
    assert str(http.port) == inside == outside == last["EXPOSE"]


def test_a_container_writes_into_its_volume(installed: configuration.Config) -> None:
    last = {each["instruction"]: each["value"] for each in dockerfile().structure}
    assert all(folder.is_relative_to(last["VOLUME"]) for folder in written(installed))


def test_the_image_is_made_of_what_is_pinned() -> None:
    found = dockerfile()
    assert all(re.fullmatch(r"python:3\.\d+-slim-\w+", image) for image in found.parent_images)
    runs = [each["value"] for each in found.structure if each["instruction"] == "RUN"]
    assert any("make wheel" in run for run in runs)
    assert any("--require-hashes --requirement requirements.txt" in run for run in runs)
    for run in runs:
        if "apt-get install" in run:
            assert "--no-install-recommends" in run
            assert "rm -rf /var/lib/apt/lists/*" in run
    assert "\nwheel:" in (ROOT / "Makefile").read_text()


def workloads() -> list[dict[str, Any]]:
    return [MANIFESTS[name] for name in WORKLOADS]


def written(config: configuration.Config) -> list[Path]:
    """The folders that a bridge writes into, as absolute paths."""
    return [config.embedded.data, config.router.checkpoint]


def unit() -> str:
    return (ROOT / "deploy/systemd/jms-bridge.service").read_text()


def test_the_service_writes_into_its_state_directory(installed: configuration.Config) -> None:
    (state,) = re.findall(r"^StateDirectory=(\S+)$", unit(), re.MULTILINE)
    assert all(folder.is_relative_to(f"/var/lib/{state}") for folder in written(installed))


def test_what_the_service_keeps_is_for_its_user_alone() -> None:
    assert "\nStateDirectoryMode=0700\n" in unit()
    assert "\nUMask=0077\n" in unit()


def test_the_steps_let_the_service_read_its_configuration_and_nobody_else(steps: str) -> None:
    assert "# chgrp jms-bridge /etc/jms-bridge/jms-bridge.properties\n" in steps
    assert "# chmod 640 /etc/jms-bridge/jms-bridge.properties\n" in steps


def test_the_steps_make_the_user_of_the_service(steps: str) -> None:
    (user,) = re.findall(r"^User=(\S+)$", unit(), re.MULTILINE)
    (home,) = re.findall(r"^WorkingDirectory=(\S+)$", unit(), re.MULTILINE)
    assert re.search(rf"^# useradd --system --user-group --home-dir {home} .* {user}$", steps, re.MULTILINE)


def test_the_service_is_not_started_again_where_that_does_not_help() -> None:
    hopeless = [ConfigurationError, SetupError, HardFailureError, SoftFailureError, UsageError]
    assert f"RestartPreventExitStatus={' '.join(str(error.exit_code) for error in hopeless)}\n" in unit()
    assert "ExecReload=/bin/kill -HUP $MAINPID\n" in unit()
