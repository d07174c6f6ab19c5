"""Pipes to a process that has ended."""

from __future__ import annotations

import os

import pytest

from engine.spark.jvm import close_pipes


def test_a_pipe_that_nobody_reads_any_more_is_closed_and_so_are_those_behind_it() -> None:
    (read, write), (other, end) = os.pipe(), os.pipe()
    os.close(read)
    os.close(end)
    to, origin = os.fdopen(write, "wb"), os.fdopen(other, "rb")
    to.write(b"a question")
    with pytest.raises(BrokenPipeError):
        to.flush()
    close_pipes(to, None, origin)
    assert (to.closed, origin.closed) == (True, True)
