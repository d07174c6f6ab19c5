"""Credentials for AWS, from the places where its tools look for them: environment, profile, and metadata services.

Each is asked anew for each token, since temporary credentials change.
"""

from __future__ import annotations

import configparser
import json
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from engine.errors import HardFailureError, UnreachableError
from engine.http_answers import content
from routes.immutable import immutable
from routes.keys.secrets import Secret

__all__ = ["AwsCredentials", "find_credentials"]

_SECONDS = 5.0
_MOST_BYTES = 64 * 1024
_CONTAINER = "http://169.254.170.2"
"""Address of the credentials of an ECS task."""
_MACHINE = "http://169.254.169.254"
"""Address of the metadata service of an EC2 machine."""
_ROLE = "/latest/meta-data/iam/security-credentials/"
_NEEDED = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine a role"
_NO_HEADERS: Mapping[str, str] = {}


@immutable
class AwsCredentials:
    """Credentials of a user or a role."""

    access_key: str
    """Id of the key."""
    secret_key: Secret
    session_token: Secret
    """Token of temporary credentials; empty for those of a user."""


def find_credentials(environment: Mapping[str, str]) -> AwsCredentials:
    """Returns the credentials of the first place that has some.

    These are the variables `AWS_ACCESS_KEY_ID` and so on; the profile `AWS_PROFILE` of the file
    `AWS_SHARED_CREDENTIALS_FILE`, by default `default` of `~/.aws/credentials`; the service that a container's
    variables name; and the metadata service of the machine, version 2.

    Raises:
        HardFailureError: no place has any.
        UnreachableError: the metadata service does not answer.
    """
    if "AWS_ACCESS_KEY_ID" in environment:
        return _made(
            environment["AWS_ACCESS_KEY_ID"],
            environment.get("AWS_SECRET_ACCESS_KEY"),
            environment.get("AWS_SESSION_TOKEN"),
        )
    if (found := _of_profile(environment)) is not None:
        return found
    if address := _container(environment):
        return _of_answer(_asked(address, _container_headers(environment)))
    if environment.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        raise HardFailureError(f"there are no credentials for AWS; {_NEEDED}")
    return _of_machine(environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", _MACHINE).rstrip("/"))


def _of_profile(environment: Mapping[str, str]) -> AwsCredentials | None:
    name = environment.get("AWS_PROFILE")
    file = Path(environment.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")).expanduser()
    profiles = configparser.RawConfigParser()
    try:
        profiles.read(file, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        raise HardFailureError(f"{file} cannot be read: {type(error).__name__}; correct it") from error
    if not profiles.has_section(name or "default"):
        if name is None:
            return None
        raise HardFailureError(f"{file} has no profile '{name}'; correct AWS_PROFILE")
    given = profiles[name or "default"]
    if "aws_access_key_id" not in given:
        raise HardFailureError(f"{file}: the profile '{name or 'default'}' has no aws_access_key_id; {_NEEDED}")
    keys = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    return _made(*(given.get(key) for key in keys))


def _container(environment: Mapping[str, str]) -> str | None:
    """Returns the address that gives a container's credentials; None outside of a container of AWS."""
    if relative := environment.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"):
        return f"{_CONTAINER}{relative}"
    address = environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    if address is not None and urlsplit(address).scheme not in ("http", "https"):
        raise HardFailureError("AWS_CONTAINER_CREDENTIALS_FULL_URI is not a URL")
    return address


def _container_headers(environment: Mapping[str, str]) -> Mapping[str, str]:
    token = environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN")
    if file := environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"):
        try:
            token = Path(file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise HardFailureError(f"{file} cannot be read: {error.strerror}") from error
    return {"Authorization": token} if token else _NO_HEADERS


def _of_machine(service: str) -> AwsCredentials:
    life = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    session = _asked(f"{service}/latest/api/token", life, "PUT")
    headers = {"X-aws-ec2-metadata-token": session}
    role = _asked(service + _ROLE, headers).split("\n", 1)[0].strip()
    return _of_answer(_asked(service + _ROLE + role, headers))


def _of_answer(text: str) -> AwsCredentials:
    try:
        said: Any = json.loads(text)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise HardFailureError("the service with credentials for AWS does not answer in JSON")
    return _made(said.get("AccessKeyId"), said.get("SecretAccessKey"), said.get("Token"))


def _made(access_key: str | None, secret_key: str | None, session_token: str | None) -> AwsCredentials:
    if not access_key or not secret_key:
        raise HardFailureError(f"the credentials for AWS lack a key or its secret; {_NEEDED}")
    return AwsCredentials(access_key, Secret(secret_key), Secret(session_token or ""))


def _asked(address: str, headers: Mapping[str, str], method: str = "GET") -> str:
    request = Request(address, headers=dict(headers), method=method)  # noqa: S310 - the scheme is http or https
    try:
        with urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310 - the scheme is http or https
            return content(answer, _MOST_BYTES, _SECONDS).decode("utf-8", "replace")
    except HTTPError as error:
        msg = f"{address}: HTTP status {error.code}; {_NEEDED}"
        raise (UnreachableError if error.code >= 500 else HardFailureError)(msg) from error
    except (OSError, HTTPException) as error:
        msg = f"the service with credentials for AWS does not answer: {address}; {_NEEDED}"
        raise UnreachableError(msg) from error
