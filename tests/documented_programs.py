"""Runs the Python programs of a page of docs/ in this process: `python -m tests.documented_programs PAGE WAY`.

WAY is `as-one` for a page whose blocks are one program, `each` for one whose blocks with imports are programs of their
own. The others are parts of a topology, for which the names in them are made here.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from engine import streams
from engine.errors import SetupError

TEMPLATE = Path(__file__).parents[1] / "engine/cli/templates/jms-bridge.properties"
_STATE = "engine.topologies.state"


def blocks(page: Path) -> list[str]:
    """The Python blocks of a page, each behind empty lines, so that a trace names the line of the page."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return ["\n" * text.count("\n", 0, block.start(1)) + block[1] for block in found]


def surroundings() -> dict[str, Any]:
    """Names that parts of topologies use, as a builder and streams of it."""
    builder = streams.StreamsBuilder("others")
    return {
        **{name: getattr(streams, name) for name in streams.__all__},
        "builder": streams.StreamsBuilder("part"),
        "orders": builder.stream("orders", value=streams.json("customer string, amount double")),
        "clicks": builder.stream("clicks", value=streams.json("page string")),
        "payments": builder.stream("payments", value=streams.json("card string, amount double")),
    }


def run(page: Path, code: str, names: dict[str, Any]) -> None:
    """Runs a block; one that defines a topology is also planned, and one that asks for state has to find none."""
    compiled = compile(code, str(page), "exec")
    if _STATE in code:
        with pytest.raises(SetupError, match="the topology has not run yet"):
            exec(compiled, names)  # noqa: S102 - our own page
        return
    exec(compiled, names)  # noqa: S102 - our own page
    if re.search(r"^def build\(", code, re.MULTILINE):
        with streams.TopologyTestDriver(names["build"]()) as driver:
            assert driver.rejected() == []


def main() -> None:
    page, way = Path(sys.argv[1]), sys.argv[2]
    shutil.copy(TEMPLATE, ".")
    common: dict[str, Any] = {}
    for code in blocks(page):
        if way == "as-one":
            names = common
        else:
            names = {} if re.search(r"^(from|import) ", code, re.MULTILINE) else surroundings()
        run(page, code, names)
        print(f"\nran {page.name}:{len(code) - len(code.lstrip()) + 1}")


if __name__ == "__main__":
    main()
