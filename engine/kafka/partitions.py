"""Partition of a key, as the bridge's producers and those of Kafka's Java clients choose it."""

from __future__ import annotations

__all__ = ["partition_of"]

_MASK, _M, _SEED = 0xFFFFFFFF, 0x5BD1E995, 0x9747B28C


def partition_of(key: bytes, partitions: int) -> int:
    """Returns the partition of a key in a topic of `partitions` partitions, by MurmurHash2 with Kafka's seed."""
    h = (_SEED ^ len(key)) & _MASK
    whole = len(key) // 4 * 4
    for at in range(0, whole, 4):
        k = int.from_bytes(key[at : at + 4], "little") * _M & _MASK
        h = (h * _M & _MASK) ^ ((k ^ (k >> 24)) * _M & _MASK)
    if rest := key[whole:]:
        h = (h ^ int.from_bytes(rest, "little")) * _M & _MASK
    h = (h ^ (h >> 13)) * _M & _MASK
    return ((h ^ (h >> 15)) & 0x7FFFFFFF) % partitions
