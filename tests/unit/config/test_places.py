"""Tests which folders `router.checkpoint` and `topologies.state` can name: paths, and URIs that Hadoop knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.topologies.section import TopologiesConfig
from routes.config import lint_text, loads

START = (
    "bridge.id=b\nroutes.r.in.include=TRUE\nroutes.r.out.topic=x\nkafka.bootstrap.servers=127.0.0.1:9092\n"
    "source.s.type=dropbox\nsource.s.root=in\nsource.s.destinations=queue:q\n"
)


def faults(lines: str) -> list[str]:
    return [str(fault) for fault in lint_text(START + lines).faults]


def test_paths_begin_at_the_file_and_uris_are_left_as_they_are() -> None:
    config = loads(START, Path("/etc/bridge"))
    assert (config.router.checkpoint, config.section(TopologiesConfig).state) == (
        Path("/etc/bridge/var/checkpoint"),
        Path("/etc/bridge/var/topologies"),
    )
    config = loads(f"{START}router.checkpoint=hdfs://one:8020/b/\ntopologies.state=s3a://bucket/states", Path("/etc"))
    assert (config.router.checkpoint, config.section(TopologiesConfig).state) == (
        "hdfs://one:8020/b",
        "s3a://bucket/states",
    )


@pytest.mark.parametrize(
    "uri", ["file:///var/b", "hdfs://nameservice/b", "abfss://container@account.dfs.core.windows.net/b", "gs://b/c"]
)
def test_uris_of_file_systems(uri: str) -> None:
    lines = f"router.checkpoint={uri}\nspark.hadoop.fs.gs.impl=com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"
    assert faults(lines) == []


@pytest.mark.parametrize(
    ("lines", "message", "hint"),
    [
        ("router.checkpoint=hdfs://one:8020", "names no folder", "hdfs://one:8020/jms-bridge"),
        ("router.checkpoint=s3://bucket/b", "no file system is known for 's3:'", "write s3a: for S3"),
        ("topologies.state=gs://bucket/b", "no file system is known for 'gs:'", "spark.hadoop.fs.gs.impl"),
    ],
)
def test_what_is_no_place(lines: str, message: str, hint: str) -> None:
    (fault,) = faults(lines)
    assert message in fault
    assert hint in fault


def test_a_login_in_a_uri_is_refused_and_not_shown() -> None:
    (fault,) = faults("router.checkpoint=s3a://me:hunter22@bucket/b")
    assert "the URI holds a login" in fault
    assert "hunter22" not in fault
