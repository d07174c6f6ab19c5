"""Samples on a page of metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

__all__ = ["samples"]


def samples(page: str, name: str, **labels: str) -> list[Sample]:
    """Samples with this name and these labels; other lines of a long page are not parsed, as tests ask often."""
    lines = "\n".join(line for line in page.splitlines() if line.startswith(name))
    found = (sample for family in text_string_to_metric_families(lines) for sample in family.samples)
    return [sample for sample in found if sample.name == name and sample.labels.items() >= labels.items()]
