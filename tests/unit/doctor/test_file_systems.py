"""Tests what doctor finds of folders on file systems of Hadoop without Spark."""

from __future__ import annotations

import socket
from pathlib import Path
from zipfile import ZipFile

from engine.doctor.checks import Severity
from engine.doctor.file_systems import check_file_systems, uris_of
from engine.embedded.ports import LOOPBACK, free_ports
from engine.spark.section import SparkConfig
from routes.config import loads

START = (
    "bridge.id=b\nroutes.r.in.include=TRUE\nroutes.r.out.topic=x\nkafka.bootstrap.servers=127.0.0.1:9092\n"
    "source.s.type=dropbox\nsource.s.root=in\nsource.s.destinations=queue:q\n"
)


def look(lines: str, folder: Path) -> list[tuple[str, Severity, str, str]]:
    config = loads(START + lines, folder)
    findings = check_file_systems(uris_of(config), config.section(SparkConfig), 5.0)
    return [(each.name, each.state, each.found, each.remedy) for each in findings]


def test_paths_are_left_to_other_checks(tmp_path: Path) -> None:
    assert look("", tmp_path) == []


def test_a_name_node_has_to_listen(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    uri = f"hdfs://{LOOPBACK}:{port}/b"
    refused = f"{uri}: nothing listens at {LOOPBACK}:{port}"
    ((setting, state, found, remedy),) = look(f"router.checkpoint={uri}", tmp_path)
    assert (setting, state, found) == ("router.checkpoint", Severity.FAILED, refused)
    assert remedy == "start it, or correct router.checkpoint"
    with socket.create_server((LOOPBACK, port)):
        ((_, state, _, _),) = look(f"topologies.state={uri}", tmp_path)
    assert state is Severity.OK


def test_a_class_that_spark_does_not_have_has_to_be_on_the_class_path(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "hadoop-aws.jar", "w") as jar:
        jar.writestr("org/apache/hadoop/fs/s3a/S3AFileSystem.class", b"")
    lines = "router.checkpoint=s3a://bucket/b\n"
    ((_, state, found, remedy),) = look(lines, tmp_path)
    assert state is Severity.FAILED
    assert "org.apache.hadoop.fs.s3a.S3AFileSystem" in found
    assert "spark.driver.extraClassPath" in remedy
    ((_, state, _, _),) = look(f"{lines}spark.driver.extraClassPath={tmp_path}/*", tmp_path)
    assert state is Severity.OK
