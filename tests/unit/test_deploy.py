"""What is in `deploy/`: taken by the tools it is for, and true about the bridge that it runs."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
import yaml
from dockerfile_parse import DockerfileParser

from engine.errors import HardFailureError, SetupError, SoftFailureError, UsageError
from routes import config as configuration
from routes.errors import ConfigurationError

ROOT = Path(__file__).parents[2]


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


def test_the_image_runs_the_installed_command_as_an_ordinary_user() -> None:
    found = dockerfile()
    last = {each["instruction"]: each["value"] for each in found.structure}
    assert yaml.safe_load(last["ENTRYPOINT"]) == ["jms-bridge"]
    assert yaml.safe_load(last["CMD"])[:2] == ["run", "-c"]
    assert last["USER"] == "10001"
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
    assert not [run for run in runs if "pip install" in run and not ("--require-hashes" in run or "--no-deps" in run)]
    for run in runs:
        if "apt-get install" in run:
            assert "--no-install-recommends" in run
            assert "rm -rf /var/lib/apt/lists/*" in run
    assert "\nwheel:" in (ROOT / "Makefile").read_text()


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
