"""`jms-bridge.properties` read, checked and explained. `load` is what a program calls, `lint` what a person asks for.

    file ── reader ──► entries ── binding ──► settings ── checks ──► faults
                                (field table)          └─ build ──► routes.model.Config

All faults are found at once, each with its place. Nothing here talks to a broker; see `engine.topics` for what only
the brokers can tell.
"""

from __future__ import annotations

from routes.config.compare import Change, ChangeKind
from routes.config.load import Linted, diff, lint, lint_text, load, loads
from routes.config.reference import reference
from routes.config.show import Row, show

__all__ = ["Change", "ChangeKind", "Linted", "Row", "diff", "lint", "lint_text", "load", "loads", "reference", "show"]
