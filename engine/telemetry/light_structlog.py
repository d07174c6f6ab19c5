"""Imports structlog without rich, which takes longer than structlog and is for a style that no log of the bridge has.

A process imports this module before any other one that imports structlog.
"""

from __future__ import annotations

import sys

__all__: list[str] = []

_rich = sys.modules.get("rich")
sys.modules["rich"] = None  # type: ignore[assignment] # a module that is not there, see `sys.modules`
try:
    import structlog  # noqa: F401
finally:
    del sys.modules["rich"]
    if _rich is not None:
        sys.modules["rich"] = _rich
