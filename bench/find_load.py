"""Rate of the router beside searches that read all of its journal again and again, to its rate without them.

Two cores that the router alone keeps busy are the worst case: searches take time from it wherever they do not give way.
"""

from __future__ import annotations

from dataclasses import asdict
from statistics import median
from threading import Event, Thread
from typing import TYPE_CHECKING

from bench.contestants import Bridge
from bench.find import config_of
from bench.report import Check, Report, table
from bench.throughput import JOURNAL, load, pass_of
from engine.find.question import FindQuestion, TopicKind
from engine.find.search import FindProgress, find

if TYPE_CHECKING:
    from bench.broker import Broker
    from bench.options import Options
    from bench.throughput import Pass
    from routes.model import Config

__all__ = ["measure"]

SHARE = 0.9
"""Least rate beside a search, to the rate without one."""
_QUESTION = FindQuestion(where="msg.body.amount > 1000000", kinds=frozenset({TopicKind.JOURNAL}))


def measure(broker: Broker, options: Options) -> Report:
    """Lets the router route the same journal without a search and beside searches, in turn."""
    load(broker, options)
    bridge = Bridge("realtime", options.settings, options.router)
    config = config_of(broker.bootstrap, options.folder)
    pass_of(broker, bridge, options)
    alone: list[Pass] = []
    beside: list[Pass] = []
    for number in range(options.rounds):
        alone.append(pass_of(broker, bridge, options))
        searches = _Searches(config)
        with searches:
            beside.append(pass_of(broker, bridge, options))
        share = beside[-1].rate / alone[-1].rate
        print(f"round {number + 1}: {share:.2f} of the rate, {searches.records:,} records searched", flush=True)
    broker.delete(JOURNAL)
    share = median(other.rate / each.rate for each, other in zip(alone, beside, strict=True))
    rows = [
        [name, f"{median(each.rate for each in passes):,.0f}"]
        for name, passes in (("alone", alone), ("beside searches", beside))
    ]
    shown = table("Router and searches", ["router", "records/s"], rows)
    check = Check("find-load: rate beside a search, to that without", share, SHARE, at_least=True)
    return Report("find-load", [shown], [check], [asdict(each) for each in (*alone, *beside)])


class _Searches:
    """Searches one after the other, until the context ends; the thread's error is raised there."""

    def __init__(self, config: Config) -> None:
        self.records = 0
        self._config = config
        self._stop = Event()
        self._error: Exception | None = None
        self._thread = Thread(target=self._search, name="searches")

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        if not self.records:
            msg = "no record was searched beside the router"
            raise RuntimeError(msg)

    def _search(self) -> None:
        try:
            while not self._stop.is_set():
                last = 0
                for each in find(self._config, _QUESTION, self._stop):
                    last = each.read if isinstance(each, FindProgress) else last
                self.records += last
        except Exception as error:  # to be raised by the thread that measures
            self._error = error
