"""Tokens for the login by IAM at Amazon MSK, which its brokers take with the mechanism OAUTHBEARER.

A token is the URL of a request to connect, signed by AWS Signature Version 4 as a query and encoded in base64.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from engine.errors import HardFailureError
from engine.kafka.aws_credentials import find_credentials

if TYPE_CHECKING:
    from engine.kafka.aws_credentials import AwsCredentials

__all__ = ["msk_region", "msk_token", "new_msk_token"]

_SECONDS = 900
"""Time for which a token holds."""
_SERVICE = "kafka-cluster"
_ALGORITHM = "AWS4-HMAC-SHA256"
_HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?:")


def msk_region(servers: str) -> str:
    """Returns the region of the brokers `host:port,…`: that in the names of their hosts, else that of the environment.

    Raises:
        HardFailureError: neither names one.
    """
    found = _HOST.search(servers)
    region = found[1] if found else os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise HardFailureError(f"the addresses '{servers}' do not tell the region of MSK; set AWS_REGION")
    return region


def new_msk_token(servers: str) -> tuple[str, float]:
    """Returns a new token for brokers, and the time at which it ends in seconds since 1970.

    Raises:
        HardFailureError: there are no credentials, or the region is not known.
        UnreachableError: the metadata service does not answer.
    """
    region, now = msk_region(servers), time.time()
    return msk_token(region, find_credentials(os.environ), now), now + _SECONDS


def msk_token(region: str, credentials: AwsCredentials, now: float) -> str:
    """Returns the token that is signed at a time, in seconds since 1970."""
    at = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    host, scope = f"kafka.{region}.amazonaws.com", f"{at[:8]}/{region}/{_SERVICE}/aws4_request"
    query = {
        "Action": f"{_SERVICE}:Connect",
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": f"{credentials.access_key}/{scope}",
        "X-Amz-Date": at,
        "X-Amz-Expires": str(_SECONDS),
        **({"X-Amz-Security-Token": credentials.session_token} if credentials.session_token else {}),
        "X-Amz-SignedHeaders": "host",
    }
    written = urlencode(sorted(query.items()), quote_via=quote, safe="-_.~")
    request = f"GET\n/\n{written}\nhost:{host}\n\nhost\n{hashlib.sha256(b'').hexdigest()}"
    text = f"{_ALGORITHM}\n{at}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{credentials.secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    url = f"https://{host}/?{written}&X-Amz-Signature={signature}&User-Agent=jms-bridge"
    return base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
