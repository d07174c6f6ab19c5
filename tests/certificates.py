"""Certificates made for a test: an authority, and what it has signed."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

STORE_PASSWORD = "for-the-test"

_KEY = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
_OWNERS = {"broker": "IP:127.0.0.1", "other": "DNS:elsewhere.example", "bridge": "DNS:bridge"}
_REGISTER = """\
[ca]
default_ca = any
[any]
database = register
rand_serial = yes
new_certs_dir = .
policy = names
copy_extensions = copy
[names]
commonName = supplied
"""
"""What OpenSSL wants for a certificate of a time that is over: it has to register that."""


def certify(folder: Path) -> Path:
    """PEM files in a new folder: the authority `ca`, `stranger`, which it has not signed, and each with its key a
    `broker` on loopback, one at an `other` host, an `expired` one, and the `bridge`."""
    folder.mkdir()
    for name in ("ca", "stranger"):
        openssl(folder, f"req -x509 {_KEY} -keyout {name}.key -out {name}.pem -subj /CN={name}")
    for name, host in _OWNERS.items():
        signed = f"-CA ca.pem -CAkey ca.key -subj /CN={name} -addext subjectAltName={host}"
        openssl(folder, f"req -x509 {_KEY} -keyout {name}.key -out {name}.pem {signed}")
    (folder / "register").touch()
    (folder / "register.cnf").write_text(_REGISTER)
    wish = f"req {_KEY} -keyout expired.key -out expired.csr -subj /CN=expired -addext subjectAltName=IP:127.0.0.1"
    openssl(folder, wish)
    when = "-startdate 20200101000000Z -enddate 20200102000000Z"
    signing = "-in expired.csr -out expired.pem -cert ca.pem -keyfile ca.key"
    openssl(folder, f"ca -config register.cnf -batch -notext -md sha256 {when} {signing}")
    return folder


def keep(folder: Path, name: str) -> Path:
    """A certificate and its key as a PKCS12 store, for Java, with `STORE_PASSWORD`."""
    export = f"pkcs12 -export -inkey {name}.key -in {name}.pem -name {name} -out {name}.p12"
    openssl(folder, f"{export} -passout pass:{STORE_PASSWORD}")
    return folder / f"{name}.p12"


def openssl(folder: Path, arguments: str) -> None:
    command = ("openssl", *arguments.split())
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
