"""What `jms-bridge doctor` tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Doctor", "Told"]


class Told(NamedTuple):
    code: int
    findings: dict[str, dict[str, Any]]

    @property
    def failed(self) -> set[str]:
        return {name for name, finding in self.findings.items() if finding["state"] == "failed"}


Doctor = Callable[..., Told]
