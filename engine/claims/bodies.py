"""Bodies that are kept as files: puts them back into the records that have a claim on them.

For sinks and commands of the bridge, and for consumers in Python:

    bodies = KeptBodies("/srv/bodies")
    body = bodies.body(message.value(), message.headers())
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.claims.claim import CLAIM, Claim
from engine.claims.section import ClaimCheckConfig
from engine.errors import UnreachableError
from engine.jars import jars
from engine.spark.section import SparkConfig
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.claims.reader_process import BodyReader
    from engine.record import Record
    from routes.model import Config

__all__ = ["BodyLostError", "KeptBodies"]


class BodyLostError(BridgeError):
    """The body of a record cannot be had any more: its file is gone or altered, or nobody knows the folder."""


class KeptBodies:
    """The folder of bodies that are kept as files, as one reads it who has records with claims; for one thread."""

    def __init__(self, folder: Path | str | None, spark: Mapping[str, str] | None = None) -> None:
        """Opens nothing yet.

        Args:
            folder: `claim-check.folder`: a path, or the URI of a folder on a file system of Hadoop; None: there is
                none, and each claim is lost.
            spark: settings `spark.*`, of which a file system of Hadoop may need some.
        """
        is_uri = isinstance(folder, str) and "://" in folder
        self._path = None if folder is None or is_uri else Path(folder)
        self._place = folder
        self._reader = _reader(str(folder), spark or {}) if is_uri else None

    @classmethod
    def of(cls, config: Config) -> KeptBodies:
        """The bodies of a bridge."""
        return cls(config.section(ClaimCheckConfig).folder, config.section(SparkConfig))

    def body(self, value: bytes | None, headers: Iterable[tuple[str, bytes | None]] | None) -> bytes | None:
        """The body of a Kafka record with this value and these headers: the value itself if it has no claim.

        Only an empty value is replaced, whatever the headers say.

        Raises:
            BodyLostError: the body cannot be had any more.
            UnreachableError: the folder cannot be read now; a later attempt may succeed.
        """
        if value != b"":
            return value
        try:
            claim = Claim.of(headers or ())
        except ValueError as error:
            raise BodyLostError(str(error)) from error
        return value if claim is None else self._redeemed(claim)

    def restored(self, record: Record) -> Record:
        """The record with its body, and without the claim on it; raises as `body`."""
        body = self.body(record.value, record.headers)
        if body is record.value:
            return record
        headers = tuple(header for header in record.headers if header[0] != CLAIM)
        return replace(record, value=body, headers=headers)

    def close(self) -> None:
        """Ends the process that reads, if there is one."""
        if self._reader is not None:
            self._reader.close()

    def _redeemed(self, claim: Claim) -> bytes:
        if self._place is None:
            msg = f"its body is in the file {claim.file}, and claim-check.folder does not say in which folder"
            raise BodyLostError(msg)
        where = f"{self._place}/{claim.file}"
        try:
            body = self._reader.read(claim.file) if self._reader else self._read(claim)
        except FileNotFoundError:
            msg = f"its body is gone: there is no file {where}; was it removed after claim-check.keep?"
            raise BodyLostError(msg) from None
        except OSError as error:
            msg = f"claim-check.folder {self._place} cannot be read: {error}"
            raise UnreachableError(msg) from error
        if not claim.fits(body):
            msg = f"its body was altered: the file {where} does not have {claim.size} bytes of that SHA-256"
            raise BodyLostError(msg)
        return body

    def _read(self, claim: Claim) -> bytes:
        assert self._path is not None, "there is a folder"
        try:
            with (self._path / claim.file).open("rb") as file:
                # One byte more than there should be shows that there are more.
                return file.read(claim.size + 1)
        except FileNotFoundError:
            if not self._path.is_dir():
                msg = "there is no such folder"
                raise OSError(msg) from None
            raise


def _reader(place: str, spark: Mapping[str, str]) -> BodyReader:
    """The reader of a file system of Hadoop; what starts it is imported for such a place alone."""
    from engine.claims.reader_process import BodyReader

    return BodyReader(place, spark, jars() / "spark")
