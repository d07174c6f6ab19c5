"""Constant tables in Spark expressions: a text in, what stands beside it out, by hash however many there are."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

__all__ = ["look_up"]

_HASHED_FROM = 1000
# Spark searches a constant map one by one if it is smaller (spark.sql.optimizer.mapLookupHashThreshold).


def look_up(text: Column, table: Mapping[str, int]) -> Column:
    """The number (int) beside a text; NULL if it is not in the table."""
    filling = {f"\0{number}": None for number in range(_HASHED_FROM - len(table))}
    full: Mapping[str, int | None] = {**filling, **table}
    # As JSON, because a Column for each entry would take a call into the JVM each; Spark makes one constant of it.
    texts = F.from_json(F.lit(json.dumps(list(full))), "array<string>")
    numbers = F.from_json(F.lit(json.dumps(list(full.values()))), "array<int>")
    return F.try_element_at(F.map_from_arrays(texts, numbers), text)
