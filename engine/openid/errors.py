"""Error for tokens, apart from the libraries that read them."""

from __future__ import annotations

from routes.errors import BridgeError

__all__ = ["TokenRefusedError"]


class TokenRefusedError(BridgeError):
    """Error for a token that does not log in; its text has nothing of the token but names and times."""
