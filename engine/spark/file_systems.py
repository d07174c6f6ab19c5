"""File systems of Hadoop that a folder of the configuration can be on, by the scheme of its URI."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["FILE_SYSTEMS", "unfit_place"]

FILE_SYSTEMS: Mapping[str, str] = {
    "file": "",
    "hdfs": "",
    "webhdfs": "",
    "swebhdfs": "",
    "viewfs": "",
    "s3a": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "abfs": "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
    "abfss": "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem",
}
"""Class of each file system; empty: it is among Spark's own jars."""


def unfit_place(scheme: str, spark: Mapping[str, str]) -> tuple[str, str] | None:
    """Returns message and hint for a scheme that Hadoop does not know with these settings; None if it knows it."""
    if scheme in FILE_SYSTEMS or f"spark.hadoop.fs.{scheme}.impl" in spark:
        return None
    hint = f"one of {', '.join(FILE_SYSTEMS)}; for another, name its class with spark.hadoop.fs.{scheme}.impl"
    return f"no file system is known for '{scheme}:'", "write s3a: for S3" if scheme in ("s3", "s3n") else hint
