"""The options of the router's JVM, without starting one."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from engine.spark.session import _java_options, own_folder

if TYPE_CHECKING:
    from pathlib import Path


def test_what_killed_routers_have_left_goes_and_what_others_use_stays(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for pid in (ended.pid, os.getppid(), os.getpid()):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "liblz4.so").touch()

    own = own_folder(tmp_path)

    assert own == tmp_path / str(os.getpid())
    assert list(own.iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {str(os.getppid()), own.name}
    assert own_folder(tmp_path / "new").is_dir()


@pytest.mark.parametrize(
    ("memory", "young"),
    [("2g", "699050k"), ("1536m", "524288k"), ("900", "307200k"), ("1GB", "349525k"), (" 3000000k ", "1000000k")],
)
def test_a_third_of_the_heap_is_for_what_is_soon_garbage(memory: str, young: str) -> None:
    assert f"-Xmn{young}" in _java_options(memory)


def test_a_size_that_spark_will_refuse_is_left_to_it() -> None:
    assert not [option for option in _java_options("lots") if option.startswith("-Xmn")]
