"""The options of the router's JVM, without starting one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine.spark.session import _java_options, own_folder

ROUTER = """
import pathlib, sys
from engine.spark.session import own_folder
print(own_folder(pathlib.Path(sys.argv[1])), flush=True)
input()
"""


def test_what_killed_routers_have_left_goes_and_what_others_use_stays(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ROUTER, str(tmp_path / "tmp")]
    others = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    folders = [Path(other.stdout.readline().strip()) for other in others if other.stdout]
    for folder in folders:
        (folder / "liblz4.so").touch()
    others[0].kill()
    others[0].communicate()

    own = own_folder(tmp_path / "tmp")

    assert [path.name for path in own.iterdir()] == ["lock"]
    assert {path for path in (tmp_path / "tmp").iterdir() if path.is_dir()} == {own, folders[1]}
    assert (folders[1] / "liblz4.so").exists()
    others[1].kill()
    others[1].communicate()


@pytest.mark.parametrize(
    ("memory", "young"),
    [("2g", "699050k"), ("1536m", "524288k"), ("900", "307200k"), ("1GB", "349525k"), (" 3000000k ", "1000000k")],
)
def test_a_third_of_the_heap_is_for_what_is_soon_garbage(memory: str, young: str) -> None:
    assert f"-Xmn{young}" in _java_options(memory)


def test_a_size_that_spark_will_refuse_is_left_to_it() -> None:
    assert not [option for option in _java_options("lots") if option.startswith("-Xmn")]
