"""A network of hosts on one machine: namespaces of the kernel, joined by a bridge. Without rights of root."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Network"]

_SWITCH = "ip link add switch type bridge && ip link set switch up"
_HELD = "echo up && exec sleep infinity"
_CABLE = "ip link add {name} type veth peer name eth0 netns {pid} && ip link set {name} master switch up"
_ADDRESS = "ip link set lo up && ip address add {address}/24 dev eth0 && ip link set eth0 up"


class Network:
    """Hosts with addresses of their own, for as long as this is open. What runs there has the files of this machine.

    A user has them who is root in a namespace of his own, and nowhere else.
    """

    def __init__(self, *hosts: str) -> None:
        """`hosts` are names of up to ten letters."""
        self.addresses = {host: f"10.77.0.{number}" for number, host in enumerate(hosts, start=1)}
        self._holders: dict[str, subprocess.Popen[str]] = {}
        try:
            self._switch = self._hold("switch", ["unshare", "--map-root-user", "--net"], f"{_SWITCH} && {_HELD}")
            for host, address in self.addresses.items():
                pid = self._hold(host, [*_entered(self._switch), "unshare", "--net"], _HELD)
                self._do(self._switch, _CABLE.format(name=f"to-{host}", pid=pid))
                self._do(pid, _ADDRESS.format(address=address))
        except BaseException:
            self.__exit__()
            raise

    @staticmethod
    def is_possible() -> bool:
        """Whether this system lets its users have networks."""
        unshare = shutil.which("unshare")
        if unshare is None or shutil.which("nsenter") is None or shutil.which("ip") is None:
            return False
        tried = [
            unshare,
            "--map-root-user",
            "--net",
            "sh",
            "-c",
            f"{_SWITCH} && ip link add one type veth peer name two",
        ]
        return subprocess.run(tried, check=False, capture_output=True).returncode == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for holder in self._holders.values():
            holder.kill()
            holder.communicate()

    def launcher(self, host: str) -> Sequence[str]:
        """Becomes the command behind it, on that host."""
        return _entered(self._holders[host].pid)

    def python(self, host: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs this Python on a host, to its end."""
        command = [*self.launcher(host), sys.executable, *arguments]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)

    def _hold(self, name: str, namespace: Sequence[str], script: str) -> int:
        """Makes a namespace and returns the process that holds it."""
        holder = subprocess.Popen([*namespace, "sh", "-c", script], stdout=subprocess.PIPE, text=True)
        self._holders[name] = holder
        assert holder.stdout is not None
        assert holder.stdout.readline() == "up\n"
        return holder.pid

    def _do(self, pid: int, script: str) -> None:
        subprocess.run([*_entered(pid), "sh", "-c", script], check=True)


def _entered(pid: int) -> Sequence[str]:
    return ("nsenter", "--user", "--net", "--preserve-credentials", "--target", str(pid))
