"""Reader of NATS credentials files, which hold the user's JWT and the seed that signs the server's nonce.

nats-py has a reader of its own, but it loops for ever on a file without a JWT.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import nkeys  # type: ignore[import-untyped] # it has no types

from engine.errors import SetupError

if TYPE_CHECKING:
    from engine.connectors.nats.system import NatsConfig

__all__ = ["Credentials"]

_PART = "-{3,}BEGIN %s-{3,}\\s+(\\S+)\\s+-{3,}END"
_JWT = re.compile(_PART % "NATS USER JWT")
_SEED = re.compile(_PART % "USER NKEY SEED")


@dataclass(frozen=True, slots=True)
class Credentials:
    """JWT and nkey seed of a user, as read from a credentials file."""

    jwt: str = field(repr=False)
    seed: str = field(repr=False)

    @staticmethod
    def read(broker: NatsConfig) -> Credentials | None:
        """Reads the file named by the broker's `credentials` key; returns None if the key is not set.

        Raises:
            SetupError: the file cannot be read, or has no JWT or no valid seed.
        """
        if broker.credentials is None:
            return None
        try:
            text = broker.credentials.read_text("ascii")
        except (OSError, ValueError) as error:
            msg = f"'{broker.name}': credentials {broker.credentials} cannot be read: {error}"
            raise SetupError(msg) from error
        jwt, seed = _JWT.search(text), _SEED.search(text)
        if jwt is None or seed is None:
            what = "user JWT" if jwt is None else "user seed"
            raise SetupError(f"'{broker.name}': credentials {broker.credentials} have no {what} in them")
        found = Credentials(jwt[1], seed[1])
        try:
            found.sign("")
        except (nkeys.NkeysError, ValueError) as error:
            msg = f"'{broker.name}': credentials {broker.credentials} have no valid user seed in them"
            raise SetupError(msg) from error
        return found

    def sign(self, nonce: str) -> bytes:
        """Returns the signature of the server's nonce, in base64."""
        pair = nkeys.from_seed(bytearray(self.seed.encode()))
        try:
            return base64.b64encode(pair.sign(nonce.encode()))
        finally:
            pair.wipe()
