"""The bridge as a client of an OpenID Connect server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.telemetry.login_section import OidcConfig

__all__ = ["OpenIdClient"]


@dataclass(frozen=True, slots=True)
class OpenIdClient:
    """The bridge as a client of an OpenID Connect server."""

    issuer: str
    client_id: str
    secret: str | None = field(default=None, repr=False)
    """None: a public client, whose login is PKCE alone."""
    authority: str | None = None
    """PEM file of the certificates to trust; None: those of the system."""
    setting: str = "http.oidc.issuer"
    """Key of the configuration that names the issuer, for errors."""

    @staticmethod
    def of(config: OidcConfig) -> OpenIdClient | None:
        """Makes the client for the login to the pages; None if no server is configured."""
        if config.issuer is None or config.client_id is None:
            return None
        return OpenIdClient(
            config.issuer, config.client_id, config.secret, None if config.ca is None else str(config.ca)
        )
