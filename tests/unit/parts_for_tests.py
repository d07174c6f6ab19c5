"""Stand-ins for parts of a bridge, run as real children: `python parts_for_tests.py BEHAVIOUR FILE --status-fd N`.

FILE gets one line for each thing that happens, so that a test can see what came first.
"""

import os
import subprocess
import sys
from pathlib import Path

from engine.errors import HardFailureError
from engine.supervision.worker import Orders, serve
from engine.telemetry.meters import SourceMetrics
from engine.telemetry.status import Reporter


def main() -> int:
    behaviour, file, _, fd = sys.argv[1:]
    name = Path(file).stem

    def say(what: str) -> None:
        with Path(file).with_name("events").open("a") as events:
            events.write(f"{name} {what} {os.getpid()}\n")

    def work(status: Reporter, orders: Orders) -> None:
        say("prepares")
        orders.go.wait()
        say("works")
        BEHAVIOURS[behaviour](status, orders)
        say("stops")

    return serve(name, int(fd), work)


def steady(status: Reporter, orders: Orders) -> None:
    SourceMetrics(status.registry, "orders", "source:orders").received(7)
    status.state("ready", "steady")
    orders.stop.wait()


def refuses(_status: Reporter, _orders: Orders) -> None:
    raise HardFailureError("topic 'orders' does not exist; create it")


def crashes_early(_status: Reporter, _orders: Orders) -> None:
    raise RuntimeError("no luck")


def with_a_grandchild(status: Reporter, orders: Orders) -> None:
    grandchild = subprocess.Popen(["/bin/sleep", "600"])
    status.state("ready", str(grandchild.pid))
    orders.stop.wait()


def deaf(status: Reporter, _orders: Orders) -> None:
    status.state("ready")
    subprocess.run(["/bin/sleep", "600"], check=True)


BEHAVIOURS = {
    "steady": steady,
    "refuses": refuses,
    "crashes-early": crashes_early,
    "with-a-grandchild": with_a_grandchild,
    "deaf": deaf,
}

if __name__ == "__main__":
    sys.exit(main())
