"""Server with the interface of S3 on loopback (moto), and Hadoop's jars for it, fetched at their first use."""

from __future__ import annotations

import re
import subprocess
import sys
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING

from engine.embedded.ports import LOOPBACK, free_ports
from engine.file_lock import lock
from engine.spark.jvm import spark_jars
from tests.brokers.packages import CACHE, jar, jars
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["S3"]

_MOTO = "moto[server]==5.2.5"
# The SDK that hadoop-aws names is one jar of half a gigabyte; these parts of it are enough.
_SDK = "2.35.4"
_PARTS = [f"software.amazon.awssdk:{name}:{_SDK}" for name in ("s3", "s3-transfer-manager")]
_ACCELERATOR = "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1"
_BUCKET = "bridge"


class S3:
    """A server with a bucket, which is gone with it."""

    def __init__(self, log: Path) -> None:
        (port,) = free_ports(1)
        self._address = f"{LOOPBACK}:{port}"
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [_program(), "-H", LOOPBACK, "-p", str(port)], stdout=output, stderr=subprocess.STDOUT
            )
        until(self._makes_bucket, 60, "an answer of moto")

    @property
    def uri(self) -> str:
        return f"s3a://{_BUCKET}"

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings of bridges that use it."""
        own = {
            "endpoint": f"http://{self._address}",
            "endpoint.region": "us-east-1",
            "path.style.access": "true",
            "access.key": "any",
            "secret.key": "any",
        }
        path = ":".join(map(str, _class_path()))
        return {"spark.driver.extraClassPath": path, **{f"spark.hadoop.fs.s3a.{name}": own[name] for name in own}}

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)

    def _makes_bucket(self) -> bool:
        connection = HTTPConnection(self._address, timeout=10)
        try:
            connection.request("PUT", f"/{_BUCKET}")
            return connection.getresponse().status == HTTPStatus.OK
        except OSError:
            return False
        finally:
            connection.close()


def _program() -> Path:
    folder = CACHE / re.sub(r"\W", "-", _MOTO)
    CACHE.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as file:
        lock(file.fileno())
        done = folder / "done"
        if not done.exists():
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            subprocess.run([folder / "bin" / "pip", "install", "--quiet", _MOTO], check=True)
            done.touch()
    return folder / "bin" / "moto_server"


def _class_path() -> list[Path]:
    (client,) = spark_jars().glob("hadoop-client-api-*.jar")
    version = re.sub(r".*-api-|\.jar", "", client.name)
    return [jar(f"org.apache.hadoop:hadoop-aws:{version}"), jar(_ACCELERATOR), *jars(*_PARTS)]
