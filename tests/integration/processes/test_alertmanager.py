"""The example for Alertmanager: taken by it, and alerts reach people by Slack, e-mail and the heartbeat."""

from __future__ import annotations

import base64
import http.server
import json
import re
import shutil
import socketserver
import subprocess
import threading
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from engine.embedded.ports import free_ports
from tests.integration.bridge_process import wait

if TYPE_CHECKING:
    from collections.abc import Iterator

CONFIG = Path(__file__).parents[3] / "deploy/alertmanager/alertmanager.yml"
SECRETS = "/etc/alertmanager/secrets"


@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        (["alertname=JmsBridgeDown", "severity=critical"], "on-call"),
        (["alertname=JmsBridgeAbsent", "severity=critical"], "on-call"),
        (["alertname=JmsBridgeDiskIsLow", "severity=warning"], "operators"),
        (["alertname=JmsBridgeWatchdog", "severity=none"], "heartbeat"),
    ],
)
def test_an_alert_is_for_the_receiver_of_its_severity(labels: list[str], receiver: str) -> None:
    amtool = program("amtool")
    checked = subprocess.run([amtool, "check-config", CONFIG], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    command = [amtool, "config", "routes", "test", f"--config.file={CONFIG}", *labels]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == receiver


def test_alerts_reach_people_and_follow_ups_do_not(tmp_path: Path) -> None:
    alertmanager = program("prometheus-alertmanager")
    (port,) = free_ports(1)
    with serving(Hook) as web, serving(Mail) as mail:
        file = tmp_path / "alertmanager.yml"
        file.write_text(reachable(CONFIG.read_text(), tmp_path, web, mail))
        command = [alertmanager, f"--config.file={file}", f"--storage.path={tmp_path}/data"]
        command += [f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="]
        with (tmp_path / "log").open("w") as log:
            process = subprocess.Popen(command, stderr=log, stdout=log)
        try:
            post(port, alert("JmsBridgeDown", "critical"), alert("JmsBridgePartNotReady", "critical"))
            post(port, alert("JmsBridgeWatchdog", "none"))
            told = dict(Hook.told.get(timeout=30) for _ in range(2))
            sender, text = Mail.told.get(timeout=30)
        finally:
            process.terminate()
            process.wait()
    slack = told["/slack"]["attachments"][0]
    assert slack["title"] == "FIRING: 1 of orders"
    assert slack["text"] == "critical: JmsBridgeDown of a:8481 <docs/runbooks.md|JmsBridgeDown>\n"
    assert [each["labels"]["alertname"] for each in told["/heartbeat"]["alerts"]] == ["JmsBridgeWatchdog"]
    assert sender == "\0alertmanager@example.com\0mail-password"
    assert "Subject: FIRING: JmsBridgeDown of a:8481" in text
    assert "JmsBridgePartNotReady" not in text
    assert not re.search("mail-password|beat-token|/slack", (tmp_path / "log").read_text())


def program(name: str) -> str:
    return shutil.which(name) or pytest.skip(f"no {name}: `apt-get install prometheus-alertmanager` brings it")


def alert(name: str, severity: str) -> dict[str, Any]:
    labels = {"alertname": name, "severity": severity, "bridge": "orders", "instance": "a:8481"}
    return {"labels": labels, "annotations": {"summary": f"{name} of a:8481", "runbook_url": "docs/runbooks.md"}}


def post(port: int, *alerts: dict[str, Any]) -> None:
    url, headers = f"http://127.0.0.1:{port}/api/v2/alerts", {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(alerts).encode(), headers)

    def accepted() -> bool:
        try:
            with urllib.request.urlopen(request) as answer:  # noqa: S310 # of this machine
                return bool(answer.status == 200)
        except OSError:
            return False

    wait(accepted, lambda: f"Alertmanager takes no alerts at {url}")


def reachable(text: str, secrets: Path, web: int, mail: int) -> str:
    """The example with addresses of this machine, secrets in a folder of the test, and without waits."""
    for name, secret in {
        "slack-url": f"http://127.0.0.1:{web}/slack",
        "smtp-password": "mail-password",
        "heartbeat": "beat-token",
    }.items():
        assert f"{SECRETS}/{name}" in text
        (secrets / name).write_text(secret)
    changes = {
        SECRETS: str(secrets),
        "smtp.example.com:587": f"127.0.0.1:{mail}\n  smtp_require_tls: false",
        "https://heartbeat.example.com/jms-bridge": f"http://127.0.0.1:{web}/heartbeat",
        "group_wait: 10s": "group_wait: 1s",
    }
    for there, here in changes.items():
        assert there in text
        text = text.replace(there, here)
    return text


class Hook(http.server.BaseHTTPRequestHandler):
    """Slack, and the service that waits for heartbeats."""

    told: ClassVar[Queue[tuple[str, Any]]] = Queue()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/heartbeat":
            assert self.headers["Authorization"] == "Bearer beat-token"
        self.told.put((self.path, body))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args: object) -> None:
        """Logs nothing."""


class Mail(socketserver.StreamRequestHandler):
    """Mail server with a login; keeps the login and the text of each mail."""

    told: ClassVar[Queue[tuple[str, str]]] = Queue()

    def handle(self) -> None:
        self.answer("220 mail")
        login = ""
        for line in self.rfile:
            word, _, rest = line.decode().strip().partition(" ")
            match word.upper():
                case "EHLO":
                    self.answer("250-mail", "250 AUTH PLAIN")
                case "AUTH":
                    login = base64.b64decode(rest.partition(" ")[2]).decode()
                    self.answer("235 ok")
                case "DATA":
                    self.answer("354 go on")
                    text = "".join(each.decode() for each in iter(self.rfile.readline, b".\r\n"))
                    self.told.put((login, text))
                    self.answer("250 ok")
                case "QUIT":
                    self.answer("221 bye")
                    return
                case _:
                    self.answer("250 ok")

    def answer(self, *lines: str) -> None:
        self.wfile.write("".join(f"{line}\r\n" for line in lines).encode())


@contextmanager
def serving(handler: type[socketserver.BaseRequestHandler]) -> Iterator[int]:
    """The port of a server of this machine alone."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()
