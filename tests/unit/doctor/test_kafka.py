"""What the doctor says of Kafka's own settings."""

from __future__ import annotations

import pytest

from engine.doctor.kafka import forgotten

DAY = 86_400_000
FOR_EVER = (2**31 - 1) * 60_000


@pytest.mark.parametrize(
    ("kept", "retention", "warns"),
    [
        (7 * DAY, 7 * DAY, False),
        (7 * DAY, 8 * DAY, True),
        (7 * DAY, -1, True),
        (FOR_EVER, -1, False),
        (DAY, 7 * DAY, True),
    ],
)
def test_offsets_that_are_forgotten_before_messages_are_reported(kept: int, retention: int, warns: bool) -> None:
    found = list(forgotten(kept, retention))
    assert bool(found) == warns
    assert all(f"{kept // DAY} days" in each.found and "offsets.retention.minutes" in each.remedy for each in found)
