"""A Kerberos server of MIT (Debian's krb5-kdc and krb5-admin-server), with a realm and a configuration of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from engine.embedded import free_ports
from engine.kafka.kerberos import lacks_kerberos
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["MISSING", "REALM", "KerberosServer"]

REALM = "TEST.EXAMPLE"
_SBIN = "/usr/sbin"
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local")
_KRB5_CONF = """\
[libdefaults]
default_realm = {realm}
dns_lookup_kdc = false
dns_canonicalize_hostname = false
udp_preference_limit = 1
[realms]
{realm} = {{
  kdc = 127.0.0.1:{port}
}}
"""
_KDC_CONF = """\
[kdcdefaults]
kdc_listen = 127.0.0.1:{port}
kdc_tcp_listen = 127.0.0.1:{port}
[realms]
{realm} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  acl_file = {folder}/acl
}}
[logging]
kdc = FILE:{folder}/kdc.log
"""


def _missing() -> str:
    """What this machine lacks for logins by Kerberos; empty: nothing."""
    lacking = [name for name in _PROGRAMS if _program(name) is None]
    if lacking:
        return f"no {', '.join(lacking)}: install krb5-kdc and krb5-admin-server"
    return "librdkafka is built without Kerberos: see docs/security.md" if lacks_kerberos() else ""


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{_SBIN}")


MISSING = _missing()
"""Reason to skip the tests; empty if they can run."""


class KerberosServer:
    """The server, a process; `start` and `stop` may be called again and again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (self._port,) = free_ports(1)
        self.configuration = folder / "krb5.conf"
        self.configuration.write_text(_KRB5_CONF.format(realm=REALM, port=self._port))
        (folder / "kdc.conf").write_text(_KDC_CONF.format(realm=REALM, port=self._port, folder=folder))
        self._variables = {"KRB5_CONFIG": str(self.configuration), "KRB5_KDC_PROFILE": str(folder / "kdc.conf")}
        self._process: subprocess.Popen[bytes] | None = None
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master-of-the-tests")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def keytab(self, name: str) -> Path:
        """Returns the keytab of a new principal, or of one that gets new keys; earlier keytabs of it fail then."""
        file = self._folder / f"{name.replace('/', '_')}-{len(list(self._folder.iterdir()))}.keytab"
        with suppress(subprocess.CalledProcessError):
            self._run("kadmin.local", "-r", REALM, "addprinc", "-randkey", name)
        self._run("kadmin.local", "-r", REALM, "ktadd", "-k", str(file), name)
        return file

    def start(self) -> None:
        """Starts the process; returns when it listens."""
        program = _program("krb5kdc")
        assert program is not None
        self._process = subprocess.Popen([program, "-n"], env={**os.environ, **self._variables})
        until(self._listens, seconds=30)

    def stop(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
            self._process = None

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 1):
            return True
        return False

    def _run(self, program: str, *arguments: str) -> None:
        path = _program(program)
        assert path is not None
        environment = {**os.environ, **self._variables}
        subprocess.run([path, *arguments], env=environment, check=True, capture_output=True, timeout=60)
