"""An imitation of the services of AWS that a login by IAM needs, and tokens as AWS's own signer makes them."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

from engine.kafka.aws_credentials import AwsCredentials
from engine.kafka.msk_token import msk_token
from routes.keys.secrets import Secret

__all__ = ["NOON", "REGION", "SECRET", "SIGNED", "MetadataService", "decoded"]

REGION = "eu-west-1"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
NOON = 1795867200.0
"""28 November 2026, 12:00."""


def _signed(extra: str, signature: str) -> str:
    return (
        "https://kafka.eu-west-1.amazonaws.com/?Action=kafka-cluster%3AConnect&X-Amz-Algorithm=AWS4-HMAC-SHA256"
        f"&X-Amz-Credential=AKIDEXAMPLE%2F20261128%2F{REGION}%2Fkafka-cluster%2Faws4_request"
        f"&X-Amz-Date=20261128T120000Z&X-Amz-Expires=900&{extra}X-Amz-SignedHeaders=host"
        f"&X-Amz-Signature={signature}&User-Agent=jms-bridge"
    )


SIGNED = [
    ("", _signed("", "5f57008b656d8c12131cc54b235477e1a8426e36d298f71b324e0b3dfab580d2")),
    (
        "session/token+with=signs",
        _signed(
            "X-Amz-Security-Token=session%2Ftoken%2Bwith%3Dsigns&",
            "e8149072a1515124b5e5648936e1c5c5a0135b70613c682fcd435cc176f55a0e",
        ),
    ),
]
"""Tokens of sessions at NOON, decoded. The signatures are those of aws-msk-iam-sasl-signer-python 1.0.2 with botocore
1.44.8; its order is another."""


def decoded(token: str) -> str:
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()


class MetadataService:
    """The metadata services of EC2 and of containers; also says to a broker whether a token is signed by its key."""

    key = AwsCredentials("A", Secret("B"), Secret("C"))

    def __init__(self) -> None:
        service = self
        self.status = 200
        self.clients: list[str] = []
        """Programs that have got the key, such as `Python-urllib/3.11`."""

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                self._answer("session" if self.headers["X-aws-ec2-metadata-token-ttl-seconds"] else None)

            def do_GET(self) -> None:
                begin = "/latest/meta-data/iam/security-credentials/"
                keys = json.dumps({"AccessKeyId": "A", "SecretAccessKey": "B", "Token": "C"})
                if self.path == "/container" and self.headers["Authorization"] == "let me":
                    self._answer(keys)
                elif self.path.startswith("/token/"):
                    self._answer(service.holder(self.path.removeprefix("/token/")))
                elif self.headers["X-aws-ec2-metadata-token"] != "session":
                    self._answer(None)
                else:
                    if self.path == f"{begin}role-1":
                        service.clients.append(self.headers["User-Agent"])
                    self._answer({begin: "role-1", f"{begin}role-1": keys}.get(self.path))

            def _answer(self, text: str | None) -> None:
                self.send_response(service.status if text is not None else 401)
                self.end_headers()
                self.wfile.write((text or "").encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def holder(self, token: str) -> str | None:
        """The id of the key that a token is signed by, if it is this service's and the token holds; else None."""
        date = parse_qs(urlsplit(decoded(token)).query)["X-Amz-Date"][0]
        at = datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
        is_right = token == msk_token(REGION, self.key, at) and at <= time.time() < at + 900
        return self.key.access_key if is_right else None

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
