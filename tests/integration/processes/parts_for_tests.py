"""Stand-ins for parts of a bridge, run as real children: `python parts_for_tests.py BEHAVIOUR FILE --status-fd N`.

FILE gets one line for each thing that happens, so that a test can see what came first.
"""

import os
import subprocess
import sys
from pathlib import Path

from engine.errors import HardFailureError, SetupError
from engine.supervision.worker import ControlMessages, serve
from engine.telemetry.meters import SourceMetrics
from engine.telemetry.status import Reporter
from engine.topologies.section import TopologiesConfig
from routes.config.snapshot import Snapshot


def main() -> int:
    behaviour, file, _, fd = sys.argv[1:]
    name = Path(file).stem

    def say(what: str) -> None:
        with Path(file).with_name("events").open("a") as events:
            events.write(f"{name} {what} {os.getpid()}\n")

    def work(status: Reporter, orders: ControlMessages) -> None:
        say("prepares")
        if behaviour == "reloadable":
            take("starting", orders.given.first(), status)
        if behaviour == "topology" and (found := orders.given.first()) is not None:
            number, snapshot = found
            status.works_by(number)
            say("starts" if snapshot.load().section(TopologiesConfig) else "is lost")
        orders.go.wait()
        say("works")
        BEHAVIOURS[behaviour](status, orders)
        say("stops")

    return serve(name, int(fd), work)


def steady(status: Reporter, orders: ControlMessages) -> None:
    SourceMetrics(status.registry, "orders", "source:orders").received(7)
    status.state("ready", "steady")
    orders.stop.wait()


def without_its_broker(status: Reporter, orders: ControlMessages) -> None:
    status.state("degraded", "no broker")
    orders.stop.wait()


def refuses(_status: Reporter, _orders: ControlMessages) -> None:
    raise HardFailureError("topic 'orders' does not exist; create it")


def degraded(status: Reporter, orders: ControlMessages) -> None:
    status.state("degraded", "at work" if orders.is_at_work.is_set() else "first")
    orders.stop.wait()


def never_ready(status: Reporter, orders: ControlMessages) -> None:
    """Waits for its system; once the bridge is at work, its machine lacks something."""
    if orders.is_at_work.is_set():
        raise SetupError("tls.ca: no such file")
    status.state("degraded", "Connection refused")
    orders.stop.wait()


def fails_later(status: Reporter, orders: ControlMessages) -> None:
    """Is ready, notices what is wrong, and ends because of it."""
    for state in ("ready", "degraded"):
        status.state(state)
        orders.stop.wait(0.5)
    if not orders.stop.is_set():
        raise RuntimeError("no luck")


def crashes_early(_status: Reporter, _orders: ControlMessages) -> None:
    raise RuntimeError("no luck")


def reloadable(status: Reporter, orders: ControlMessages) -> None:
    """Takes newer configurations as the router does, unless there is a file `hold` beside FILE.

    Its detail is its process and what it works by.
    """
    status.state("ready", status.current.detail)
    hold = Path(sys.argv[2]).with_name("hold")
    while not orders.stop.wait(0.02):
        if not hold.exists() and (found := orders.given.newer()) is not None:
            take("ready", found, status)


def topology(status: Reporter, orders: ControlMessages) -> None:
    """Does what its code says, which is its detail, with its process."""
    (code,) = orders.given.codes.values()
    text = code.modules[0].source.decode().strip()
    if "refuses" in text:
        raise SetupError("the state does not fit")
    status.state("ready", f"{os.getpid()} {text}")
    orders.stop.wait()


def take(state: str, found: tuple[int, Snapshot] | None, status: Reporter) -> None:
    assert found is not None
    number, snapshot = found
    status.state(state, f"{os.getpid()} {snapshot.load().routes[0].targets[0].address}")
    status.works_by(number)


def with_a_grandchild(status: Reporter, orders: ControlMessages) -> None:
    grandchild = subprocess.Popen(["/bin/sleep", "600"])
    status.state("ready", str(grandchild.pid))
    orders.stop.wait()


def deaf(status: Reporter, _orders: ControlMessages) -> None:
    status.state("ready")
    subprocess.run(["/bin/sleep", "600"], check=True)


BEHAVIOURS = {
    "steady": steady,
    "reloadable": reloadable,
    "topology": topology,
    "without-its-broker": without_its_broker,
    "refuses": refuses,
    "fails-later": fails_later,
    "crashes-early": crashes_early,
    "degraded": degraded,
    "never-ready": never_ready,
    "with-a-grandchild": with_a_grandchild,
    "deaf": deaf,
}

if __name__ == "__main__":
    sys.exit(main())
