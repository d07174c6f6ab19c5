"""Token endpoints that an OpenID Connect server names, and what is said of servers that do not."""

from __future__ import annotations

import re

import pytest

from engine.errors import HardFailureError, UnreachableError
from engine.kafka.token_issuer import token_endpoint
from tests.token_issuer import TokenIssuer


def test_an_issuer_names_its_token_endpoint_with_or_without_a_slash() -> None:
    with TokenIssuer() as issuer:
        assert token_endpoint(issuer.url, None, "kafka.") == f"{issuer.url}/token"
        assert token_endpoint(f"{issuer.url}/", None, "kafka.") == f"{issuer.url}/token"


def test_an_issuer_that_cannot_answer_at_present_is_asked_again() -> None:
    with TokenIssuer() as issuer:
        issuer.is_away = True
        with pytest.raises(UnreachableError, match="503"):
            token_endpoint(issuer.url, None, "kafka.")
        issuer.is_away = False
        assert token_endpoint(issuer.url, None, "kafka.") == f"{issuer.url}/token"


@pytest.mark.parametrize("keys", ["kafka.", "source.other.", "sink.other."])
def test_an_address_without_discovery_has_to_be_corrected(keys: str) -> None:
    with (
        TokenIssuer() as issuer,
        pytest.raises(HardFailureError, match=rf"404; correct {re.escape(keys)}sasl\.oauthbearer\.issuer"),
    ):
        token_endpoint(f"{issuer.url}/realms/none", None, keys)
