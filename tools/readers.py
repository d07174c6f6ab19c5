"""Readers of the output of pip, Maven and Go: their progress, and the reason of a failure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

__all__ = [
    "Explain",
    "Read",
    "go_cause",
    "go_reader",
    "last_line",
    "maven_cause",
    "maven_reader",
    "pip_cause",
    "pip_reader",
]

Read = Callable[[str], "str | None"]
"""Reads the current step from a line of output; None if the line does not name one."""

Explain = Callable[[Sequence[str]], str]
"""Finds the line with the reason in the output of a command that failed."""


def pip_reader(total: int) -> Read:
    """Counts packages up to `total`, and the megabytes of a large one (pip has to run with `--progress-bar=raw`)."""
    number, file = 0, ""

    def read(line: str) -> str | None:
        nonlocal number, file
        line = line.strip()
        word, _, rest = line.partition(" ")
        if word == "Collecting":
            number += 1
            file = rest.split(" ", 1)[0]
            return f"{number} of {total}, {file}"
        if word == "Progress" and (sizes := re.fullmatch(r"(\d+) of (\d+)", rest)):
            done, whole = (int(size) / 1e6 for size in sizes.groups())
            return f"{number} of {total}, {file}: {done:.0f} of {whole:.0f} MB"
        if line.startswith("Building wheel for"):
            return f"building {rest.split()[2]}"
        if line.startswith("Installing collected packages"):
            return "installing"
        return None

    return read


def pip_cause(lines: Sequence[str]) -> str:
    """First error of pip: later ones follow from it. Without a network pip finds no version of anything."""
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    broken = [line for line in lines if "after connection broken by" in line]
    if broken and "from versions: none" in " ".join(errors):
        reason = re.search(r"\[Errno -?\d+\] [\w ]+", broken[-1])
        return f"the package index cannot be reached: {reason[0] if reason else broken[-1]}"
    return errors[0] if errors else last_line(lines)


def maven_reader() -> Read:
    """Counts what was downloaded; how much there will be, Maven does not know either."""
    files, size = 0, 0.0
    units = {"B": 1e-6, "kB": 1e-3, "MB": 1.0, "GB": 1e3}

    def read(line: str) -> str | None:
        nonlocal files, size
        if match := re.search(r"Downloaded from \S+: \S*/(\S+) \(([\d.]+) ([kMG]?B)", line):
            files += 1
            size += float(match[2]) * units[match[3]]
            return f"{files} files, {size:.0f} MB, {match[1]}"
        if match := re.search(r" Building (\S+) \S+ +\[\d+/\d+\]$", line):
            return match[1]
        return None

    return read


def maven_cause(lines: Sequence[str]) -> str:
    """First error of Maven, without the advice on how to run it again with more output."""
    errors = [line.removeprefix("[ERROR] ").strip() for line in lines if line.startswith("[ERROR] ")]
    return errors[0].split(" -> [Help")[0] if errors else last_line(lines)


def go_reader(line: str) -> str | None:
    """Modules as they are downloaded, then packages as they are compiled (Go has to run with `-v`)."""
    return line.strip().removeprefix("go: ") or None


def go_cause(lines: Sequence[str]) -> str:
    """The first line that is neither a download, nor a package that was compiled, nor the heading of its errors."""
    told = [line.removeprefix("go: ").strip() for line in lines if not line.startswith(("go: downloading ", "#"))]
    return next((line for line in told if " " in line), last_line(lines))


def last_line(lines: Sequence[str]) -> str:
    """The last that is not blank: where most programs say why they end."""
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")
