"""What `make run` starts beside the bridge."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from routes.config import loads
from tests.integration.bridge_process import wait
from tests.processes import gone
from tools.run import ROOT, prometheus, scraping

ROUTE = "routes.a.in.include=msg.address==a\nroutes.a.out.topic=a\n"
HOLDS = """\
import sys, time
from routes.config import loads
from tools.run import prometheus
with prometheus(loads(sys.argv[1])) as url:
    print(url, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def text(tmp_path: Path) -> str:
    if not shutil.which("prometheus"):
        pytest.skip("no prometheus: switch this test on with `apt-get install prometheus`")
    return f"bridge.id=b\nhttp.address=127.0.0.1:1234\nembedded.data={tmp_path}\n{ROUTE}"


def get(url: str, path: str) -> str:
    """The body; empty without a good answer."""
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=5)) as connection:
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.read().decode() if answer.status == HTTPStatus.OK else ""
        except OSError:
            return ""


def answers(url: str) -> bool:
    return bool(get(url, "/-/ready"))


def test_a_prometheus_scrapes_the_bridge_and_ends_with_it(text: str) -> None:
    with prometheus(loads(text)) as url:
        wait(lambda: "http://127.0.0.1:1234/metrics" in get(url, "/api/v1/targets"))
    assert not answers(url)


def test_it_ends_when_who_has_started_it_is_killed(text: str) -> None:
    if not shutil.which("setpriv"):
        pytest.skip("no setpriv, which is part of util-linux")
    with subprocess.Popen([sys.executable, "-c", HOLDS, text], cwd=ROOT, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        url = holder.stdout.readline().strip()
        wait(lambda: answers(url), lambda: url)
        children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()
        holder.kill()
    for child in children:
        wait(lambda child=child: gone(int(child)), lambda: "prometheus runs on")  # type: ignore[misc]
    assert not answers(url)


def test_none_is_started_for_figures_that_want_a_login(text: str) -> None:
    with prometheus(loads(f"{text}http.token=secret\n")) as url:
        assert url == ""


def test_none_is_started_for_a_configuration_with_faults() -> None:
    with prometheus(None) as url:
        assert url == ""


def test_the_alerts_are_watched(text: str, tmp_path: Path) -> None:
    file = tmp_path / "prometheus.yml"
    file.write_text(scraping(loads(text)))
    promtool = shutil.which("promtool")
    assert promtool
    done = subprocess.run([promtool, "check", "config", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "rules found" in done.stdout


def test_without_the_program_there_is_none(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    with prometheus(loads(text)) as url:
        assert url == ""
