"""What is in `deploy/`: taken by the tools it is for, and true about the bridge that it runs."""

from __future__ import annotations

import io
import re
import runpy
import sys
from pathlib import Path
from zipfile import ZipFile

import pyspark
import pytest
import yaml
from dockerfile_parse import DockerfileParser

from engine.errors import HardFailureError, SetupError, SoftFailureError, UsageError
from engine.spark.jvm import MODULE_OPTIONS
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


def test_an_image_is_built_from_what_its_dockerfile_copies_and_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert patterns[0] == "*"
    assert all(pattern.startswith("!") for pattern in patterns[1:])
    copies = [each["value"].split()[:-1] for each in dockerfile().structure if each["instruction"] == "COPY"]
    copied = {source for sources in copies if not sources[0].startswith("--from") for source in sources}
    assert {pattern.removeprefix("!") for pattern in patterns[1:]} == copied
    assert not [name for name in copied if not (ROOT / name).exists() and name != "dist/*.whl"]


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
    assert "ARG DEBIAN=debian:bookworm-slim\nFROM $DEBIAN AS debian\n" in found.content
    runs = [each["value"] for each in found.structure if each["instruction"] == "RUN"]
    assert any("--require-hashes --requirement requirements.txt" in run for run in runs)
    assert not [run for run in runs if "pip install" in run and not ("--require-hashes" in run or "--no-deps" in run)]
    for run in runs:
        if "apt-get" in run:
            assert "apt-get install" not in run or "--no-install-recommends" in run
            assert re.search(r"rm -rf (?:\S+ )?/var/lib/apt/lists/\*", run)
    assert "\nimage: wheel " in (ROOT / "Makefile").read_text()


def test_the_image_itself_is_made_by_copies_alone_and_has_no_tools() -> None:
    last = dockerfile().content.rpartition("\nFROM ")[2]
    assert last.startswith("scratch\n")
    assert not re.search(r"^(RUN|ADD|SHELL)\b", last, re.MULTILINE)
    packages = (ROOT / "deploy/docker/packages.txt").read_text().split()
    assert packages == sorted(packages)
    assert not {"apt", "bash", "busybox", "coreutils", "dpkg", "perl-base"} & {*packages}


def test_the_java_runtime_of_the_image_has_the_modules_that_sparks_jvm_asks_for() -> None:
    options = [option.partition("=") for option in MODULE_OPTIONS]
    wanted = {value.partition("/")[0] for option, _, value in options if option in ("--add-modules", "--add-opens")}
    assert wanted <= set((ROOT / "deploy" / "docker" / "modules.txt").read_text().split())


def test_the_image_the_chart_and_the_script_agree_on_the_user_and_its_folder() -> None:
    last = {each["instruction"]: each["value"] for each in dockerfile().structure}
    values = yaml.safe_load((ROOT / "deploy/helm/jms-bridge/values.yaml").read_text())
    pod = values["podSecurityContext"]
    user = int(last["USER"])
    assert {pod["runAsUser"], pod["runAsGroup"], pod["fsGroup"]} == {user}
    script = (ROOT / "deploy/docker/root.sh").read_text()
    assert f"jms-bridge:x:{user}:{user}:jms-bridge:{last['VOLUME']}:" in script
    assert f'--mode 700 --owner {user} --group {user} "$image{last["VOLUME"]}"' in script
    assert last["WORKDIR"] == last["VOLUME"]
    assert values["terminationGracePeriodSeconds"] > 120


def test_the_trimmed_jars_are_those_of_the_pinned_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "lib/python3.11/site-packages"
    jars = packages / "pyspark/jars"
    jars.mkdir(parents=True)
    pinned = Path(pyspark.__file__).parent / "jars"
    for jar in pinned.glob("*.jar"):
        (jars / jar.name).symlink_to(jar)
    for name in ("lz4-java", "rocksdbjni", "snappy-java", "zstd-jni"):
        (jar,) = jars.glob(f"{name}-*.jar")
        jar.unlink()
        with ZipFile(jar, "w") as small:
            small.writestr("Linux/x86_64/lib.so", b"")
            small.writestr("linux/aarch64/lib.so", b"")
            small.writestr("darwin/x86_64/lib.dylib", b"")
    monkeypatch.setattr(sys, "argv", ["trim.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "deploy/docker/trim.py"), run_name="__main__")
    gone = {jar.name for jar in pinned.glob("*.jar")} - {jar.name for jar in jars.iterdir()}
    assert all(any(name.startswith(start) for name in gone) for start in ("breeze", "hive-exec", "jline", "spark-repl"))
    assert not [name for name in gone if name.startswith(("spark-core", "spark-sql", "hive-storage-api", "parquet"))]
    with ZipFile(next(jars.glob("rocksdbjni-*.jar"))) as trimmed:
        assert len(trimmed.namelist()) == 1


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
