"""Request and reply through the whole bridge, both ways between NATS and JMS: how long, and whether any is lost.

`asking` asks and answers. Each reply has gone twice through source, journal, router, sink topic and sink, so that its
time is that of two whole passages.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
import uuid
from http.client import HTTPConnection
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.processes import running
from bench.programs import ROOT
from bench.report import Check, Report, table
from engine.embedded import free_ports
from engine.embedded.ports import LOOPBACK

if TYPE_CHECKING:
    from pathlib import Path

    from bench.options import Options

__all__ = ["measure"]

TARGET_MEDIAN_MS = 15.0
_AT_ONCE = 2_000
_WARM_UP = 3_000
_PATIENCE_SECONDS = 180.0
_QUANTILES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


def measure(options: Options) -> Report:
    """Both directions in turn, in rounds, on one bridge."""
    folder = options.folder / uuid.uuid4().hex[:8]
    folder.mkdir(parents=True)
    kafka, core, stomp, amqp, nats, http = free_ports(6)
    settings = {
        "bridge.id": "bench",
        "embedded": "on",
        "embedded.data": folder,
        "embedded.kafka.port": kafka,
        "embedded.artemis.port": core,
        "embedded.stomp.port": stomp,
        "embedded.amqp.port": amqp,
        "embedded.nats.port": nats,
        "http.address": f"{LOOPBACK}:{http}",
        "router.checkpoint": folder / "checkpoint",
        "source.jms.type": "stomp",
        "source.jms.destinations": "queue:ask.nats",
        "source.nats.type": "nats",
        "source.nats.destinations": "ask.jms",
        "sink.jms.type": "stomp",
        "sink.jms.reply-to": "queue:bench.replies",
        "sink.nats.type": "nats",
        "sink.nats.reply-to": "bench.replies",
        "routes.to-nats.in.include": "msg.address==ask.nats",
        "routes.to-nats.out.topic": "nats:service.nats",
        "routes.to-jms.in.include": "msg.address==ask.jms",
        "routes.to-jms.out.topic": "stomp:queue/service.jms",
        **options.settings,
    }
    file = folder / "bridge.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = [sys.executable, "-m", "engine", "run", "--config", str(file)]
    runs = []
    with running(command, folder / "bridge.log", ROOT) as bridge:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not _ready(http):
            bridge.check()
            if time.monotonic() > deadline:
                raise RuntimeError(f"the bridge is not ready, see {bridge.log}")
            time.sleep(0.2)
        for _ in range(options.rounds):
            for asks in ("nats", "jms"):
                runs.append(_asked(asks, nats, stomp, options, folder))
                print(_line(runs[-1]), flush=True)
    return _report(runs)


def _asked(asks: str, nats: int, stomp: int, options: Options, folder: Path) -> dict[str, Any]:
    figures = {
        "nats": nats,
        "stomp": stomp,
        "warm-up": _WARM_UP,
        "requests": options.requests,
        "at-once": _AT_ONCE,
        "rate": options.request_rate,
        "asks": asks,
    }
    arguments = [text for name, value in figures.items() for text in (f"--{name}", str(value))]
    log = folder / f"asking-{uuid.uuid4().hex[:8]}.log"
    with log.open("wb") as errors:
        done = subprocess.run(
            [sys.executable, "-m", "bench.asking", *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=errors,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"asking ended with {done.returncode}, see {log}")
    result: dict[str, Any] = json.loads(done.stdout)
    took = sorted(result.pop("milliseconds")) or [math.inf]
    quantiles = {name: took[math.ceil(share * len(took)) - 1] for name, share in _QUANTILES.items()}
    return {"asks": asks, "requests": options.requests, **quantiles, **result}


def _ready(port: int) -> bool:
    connection = HTTPConnection(LOOPBACK, port, timeout=5)
    try:
        connection.request("GET", "/ready")
        return connection.getresponse().status == 200  # HTTP's own number
    except OSError:
        return False
    finally:
        connection.close()


def _line(run: dict[str, Any]) -> str:
    figures = " ".join(f"{name} {run[name]:.1f}" for name in _QUANTILES)
    lost = f"{run['lost']} lost; {_AT_ONCE} at once: {run['burst_lost']} lost, {run['burst_seconds']:.1f} s"
    return f"{run['asks']} asks: {figures} ms, {lost}, {run['repeated']} repeated"


def _report(runs: list[dict[str, Any]]) -> Report:
    rows, checks = [], []
    for asks in dict.fromkeys(run["asks"] for run in runs):
        mine = [run for run in runs if run["asks"] == asks]
        middle = {name: median(run[name] for run in mine) for name in _QUANTILES}
        lost = sum(run["lost"] + run["burst_lost"] + run["repeated"] for run in mine)
        burst = median(run["burst_seconds"] for run in mine)
        rows.append([f"{asks} asks", *(f"{each:.1f}" for each in middle.values()), str(lost), f"{burst:.1f}"])
        checks.append(Check(f"requests, {asks} asks: median in ms", middle["p50"], TARGET_MEDIAN_MS))
        checks.append(Check(f"requests, {asks} asks: lost or repeated", lost, 0))
    title = f"Request and reply at an even rate, milliseconds; then {_AT_ONCE} at once; median of the rounds"
    columns = ["", *_QUANTILES, "lost or repeated", "at once, s"]
    return Report("requests", [table(title, columns, rows)], checks, runs)
