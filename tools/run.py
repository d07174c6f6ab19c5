"""`make run`: the bridge on jms-bridge.properties, and a Prometheus beside it where one is installed.

Prometheus is for looking at, and not a part of the bridge: nothing waits for it, and it ends with the bridge. After the
first run, when nobody waits for them, the class data are made with which the JVMs of the next one start faster.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from engine.private import UMASK, make_folder
from engine.telemetry.http_section import HttpConfig
from routes.config import lint
from tools.setup import class_data_are_current

if TYPE_CHECKING:
    from collections.abc import Iterator

    from routes.model import Config

__all__ = ["ends_with_us", "main", "make_class_data", "prometheus", "scraping"]

ROOT = Path(__file__).resolve().parents[1]
CONFIGURATION = ROOT / "jms-bridge.properties"
_BRIDGE = [sys.executable, "-m", "engine", "run"]
_PORT = 9090
_KEPT = "2d"
_END_SECONDS = 10.0
_LOWEST_PRIORITY = 19


def main() -> int:
    """The bridge's exit status."""
    config = lint(CONFIGURATION).config
    with prometheus(config) as url:
        if url:
            print(f"Prometheus scrapes the bridge: {url} (dashboards for Grafana are in grafana/)", flush=True)
        status = _run(_BRIDGE)
    if status == 0:
        make_class_data()
    return status


def make_class_data() -> None:
    """Has the class data of the JVMs made in the background, at the lowest priority, unless they are there."""
    if class_data_are_current():
        return
    print("In the background, class data are made with which the bridge starts in half the time", flush=True)
    subprocess.Popen(
        [sys.executable, "-m", "tools.setup", "--class-data"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: os.nice(_LOWEST_PRIORITY),
    )


@contextmanager
def prometheus(config: Config | None) -> Iterator[str]:
    """Runs a Prometheus that scrapes the bridge of a configuration; yields its URL, empty if there is none."""
    program = shutil.which("prometheus")
    if program is None or config is None or not _is_open(config):
        yield ""
        return
    folder = config.embedded.data / "prometheus"
    make_folder(folder)
    (folder / "prometheus.yml").write_text(scraping(config))
    address = f"127.0.0.1:{_free_port()}"
    command = [
        *ends_with_us(),
        program,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--storage.tsdb.retention.time={_KEPT}",
        f"--web.listen-address={address}",
        "--enable-feature=exemplar-storage",
    ]
    with (folder / "prometheus.log").open("w") as log:
        # Ctrl-C is the bridge's, which takes a while to stop: its last figures are scraped, too.
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, umask=UMASK)
    try:
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(_END_SECONDS)


def scraping(config: Config) -> str:
    """The shipped configuration of Prometheus, for this bridge."""
    shipped = (ROOT / "grafana/prometheus.yml").read_text()
    target = shipped.replace("127.0.0.1:8480", f"{config.section(HttpConfig).host}:{config.section(HttpConfig).port}")
    return target.replace("rules/jms-bridge.yml", str(ROOT / "grafana/rules/jms-bridge.yml"))


def _is_open(config: Config) -> bool:
    """True if every user of this machine may read the figures: otherwise Prometheus would need the login."""
    http = config.section(HttpConfig)
    return not (http.certificate or http.token or http.username)


def _free_port() -> int:
    """Default port of Prometheus; another one if it is in use."""
    for port in (_PORT, 0):
        try:
            with socket.create_server(("127.0.0.1", port)) as server:
                return int(server.getsockname()[1])
        except OSError:
            continue
    return _PORT


def ends_with_us() -> list[str]:
    """Prefix of a command that ends the program when this process is killed; empty if setpriv is missing."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM"] if setpriv else []


def _run(command: list[str]) -> int:
    """Runs it to its end; signals are passed on. Ctrl-C reaches it by itself: it is of the same terminal."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Ignored signals are inherited, handled ones are not.
    process = subprocess.Popen(command, cwd=ROOT, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: process.send_signal(received))
    return process.wait()


if __name__ == "__main__":
    sys.exit(main())
