"""The embedded NATS: one server with JetStream on loopback; no users, no monitoring port.

Limits of messages and logs are in `etc/nats*.conf`; address, port and folders are arguments.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from engine.embedded.ports import LOOPBACK
from engine.embedded.server import ETC, EmbeddedServer
from engine.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["REMEDY", "EmbeddedNats", "find_nats_server", "nats_configuration", "nats_version"]

_NAME = "nats-server"
BUILT = Path(__file__).parents[2] / ".nats" / _NAME
"""The program that `make nats` builds."""
SYSTEM_PROGRAMS = "/usr/sbin"
"""Folder in which Debian's package installs the program, and which only root has in its PATH."""
REMEDY = f"run `make nats`, install the Debian package {_NAME}, or set the url of a server you have"

_LIMITS_LOG_FILES = (2, 10)
"""First version that knows `logfile_max_num`; older servers end at an unknown key."""
_ANSWER_SECONDS = 10

# A request to JetStream, which is answered once the server has read its streams again.
_ASK_JETSTREAM = b'CONNECT {"verbose":false}\r\nSUB answer 1\r\nPUB $JS.API.INFO answer 0\r\n\r\n'


def find_nats_server() -> Path:
    """The program that `make nats` has built, else the one of the system; SetupError if there is none."""
    if BUILT.exists():
        return BUILT
    found = shutil.which(_NAME) or shutil.which(_NAME, path=SYSTEM_PROGRAMS)
    if found is None:
        msg = f"no {_NAME}: {REMEDY}"
        raise SetupError(msg)
    return Path(found)


def nats_version(program: Path) -> str:
    """The version of a nats-server, such as `2.9.10`; SetupError if the program does not tell one."""
    output = _output(program, "--version")
    if match := re.search(r"\bv?(\d+\.\d+\S*)", output):
        return match[1]
    msg = f"{program} --version does not report a version, it says {output.strip()!r}"
    raise SetupError(msg)


def nats_configuration(program: Path) -> Path:
    """The configuration file for this version of nats-server; SetupError if the program refuses it."""
    number = tuple(map(int, nats_version(program).split(".")[:2]))
    file = ETC / ("nats.conf" if number >= _LIMITS_LOG_FILES else "nats-2.9.conf")
    _output(program, "-t", "-c", str(file))
    return file


def _output(program: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            [program, *arguments], capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        msg = f"{program} does not run: {error}"
        raise SetupError(msg) from error
    if done.returncode:
        msg = f"{program} {arguments[0]} failed: {(done.stderr or done.stdout).strip()}"
        raise SetupError(msg)
    return done.stdout


class EmbeddedNats(EmbeddedServer):
    """NATS for one machine; `data/nats` holds JetStream's store and the log."""

    title: ClassVar[str] = "NATS"
    causes: ClassVar[Sequence[re.Pattern[str]]] = (
        re.compile(r"^.* \[FTL\] (.*)$", re.MULTILINE),
        re.compile(r"^.* \[ERR\] (.*)$", re.MULTILINE),
    )

    def __init__(self, data: Path, port: int, program: Path | None = None) -> None:
        """`program` is the nats-server to run; the default is the one that `find_nats_server` finds."""
        super().__init__(data / "nats", {"embedded.nats.port": port})
        self._port = port
        self._given = program

    @property
    def url(self) -> str:
        """The URL for `source.NAME.url` of a NATS source."""
        return f"nats://{LOOPBACK}:{self._port}"

    def _find_program(self) -> Path:
        return self._given.absolute() if self._given else find_nats_server()

    def _command(self, program: Path) -> Sequence[str | Path]:
        """The server's command line.

        Paths are relative to the server's folder; in the folder it is given, JetStream makes another of its own name.
        """
        listen = ("--addr", LOOPBACK, "--port", str(self._port))
        log = str(self.log.relative_to(self.folder))
        file = nats_configuration(program)
        return [program, "--config", file, *listen, "--jetstream", "--store_dir", ".", "--log", log]

    def _answers(self) -> bool:
        """True if the server greets a client and JetStream answers, which says that its streams are available too."""
        try:
            with (
                socket.create_connection((LOOPBACK, self._port), timeout=1) as connection,
                connection.makefile("rb") as lines,
            ):
                if not lines.readline().startswith(b"INFO "):
                    return False
                connection.sendall(_ASK_JETSTREAM)
                return any(line.startswith(b"MSG answer ") for line in lines)
        except OSError:
            return False
