"""Adds the JVM jars and a bill of materials to wheels, which run outside the repository."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class JarsHook(BuildHookInterface):  # type: ignore[type-arg] # hatchling leaves its configuration untyped
    """For wheels; an editable install has its jars beside it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """FileNotFoundError where the jars are not there yet."""
        if version == "editable":
            return
        jars = Path(self.root, ".jars")
        sys.path.insert(0, self.root)
        from engine.jars import HALLMARKS
        from tools.sbom import NAME, bill

        for name in HALLMARKS:
            if not (jars / name).is_dir():
                msg = f"{jars / name} is missing: run `make setup` first"
                raise FileNotFoundError(msg)
            build_data["force_include"][str(jars / name)] = f"engine/_jars/{name}"
        file = Path(self.root, "build", NAME)
        file.parent.mkdir(exist_ok=True)
        file.write_text(bill(), encoding="utf-8")
        build_data["sbom_files"] = [str(file)]
