"""The reading of `jms-bridge.properties`: parsed, checked and explained. `load` is for programs, `lint` for users.

    file ── reader ──► entries ── binding ──► settings ── checks ──► faults
                                (field table)          └─ build ──► routes.model.Config

All faults are found at once, each with its place. This package asks no broker; `engine.kafka.topics` checks
facts that only the brokers know.
"""

from __future__ import annotations

from routes.config.compare import Change, ChangeKind
from routes.config.load import Linted, diff, lint, lint_text, load, loads
from routes.config.reference import reference
from routes.config.show import SettingRow, show

__all__ = [
    "Change",
    "ChangeKind",
    "Linted",
    "SettingRow",
    "diff",
    "lint",
    "lint_text",
    "load",
    "loads",
    "reference",
    "show",
]
