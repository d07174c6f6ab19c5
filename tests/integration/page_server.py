"""A status page with a login, served for a browser, and what is too hard to read on it."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from engine.dead_letters.store import DeadLetterStore
from engine.dead_letters.watch import DeadLetterWatch
from engine.page.app import pages
from engine.page.view import Samples, View
from engine.telemetry.http import HttpServer, application
from engine.telemetry.http_section import HttpConfig, ViewerConfig
from engine.telemetry.meters import Figures
from engine.telemetry.metrics import FAILED, JOURNALED, LAG_RECORDS, ROUTED
from engine.telemetry.report import ComponentReport, PeerReport
from engine.telemetry.status import State, Status, StatusBoard
from routes.config.snapshot import Snapshot

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path

__all__ = ["CONTRASTS", "LOGIN", "VIEWER", "Served"]

LOGIN = {"Authorization": "Basic " + b64encode(b"anna:pass").decode()}
VIEWER = {"Authorization": "Basic " + b64encode(b"eve:look").decode()}
_AWAY = ComponentReport("sink:billing", "unreachable", "", None, None, 0.0, None, None)
_WELL = ComponentReport("source:orders/2", "ready", "stomp://broker.example:61613", 20.0, None, 1.0, 0.1, 1e8)
PEERS = (
    PeerReport("edge-1.a-data-centre.example:8480", True, 1.0, "", True, (_WELL,)),
    PeerReport(
        "edge-2.example:8480",
        False,
        75.0,
        "no bridge answers at https://edge-2.example:8480: timed out",
        False,
        (_AWAY,),
    ),
    PeerReport("[2001:db8::4]:8480", False, 5000.0, "No route to host", False, ()),
)

CONTRASTS = """
const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
const linear = (c) => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
const light = ([r, g, b]) => [r, g, b].map((c) => linear(c / 255))
  .reduce((sum, c, n) => sum + c * [.2126, .7152, .0722][n], 0);
const ground = (element) => {
  for (let each = element; each; each = each.parentElement) {
    const box = each.matches?.("g.node") ? each.querySelector("rect") : null;
    const [r, g, b, a = 1] = parse(box ? getComputedStyle(box).fill : getComputedStyle(each).backgroundColor);
    if (r !== undefined && a > .99) return [r, g, b];
  }
  return [255, 255, 255];
};
const found = [];
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  if (!own || !element.getClientRects().length || element.closest("title, noscript, .skip, .unseen")) continue;
  const style = getComputedStyle(element);
  const ink = parse(element.closest("svg") ? style.fill : style.color).slice(0, 3);
  const [a, b] = [light(ink), light(ground(element))];
  const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  if (contrast < 4.5) found.push(`${element.tagName}.${element.className.baseVal ?? element.className} ` +
    `${contrast.toFixed(2)} ${element.textContent.trim().slice(0, 30)}`);
}
return found;
"""
"""What is harder to read than WCAG's AA allows."""


class Served:
    """A status page with a login, and the bridge behind it."""

    def __init__(self, stack: ExitStack, file: Path) -> None:
        snapshot = Snapshot.take(file)
        self.config = snapshot.load()
        parts = ("router", *(f"source:{source.name}" for source in self.config.sources))
        self.board = StatusBoard(parts)
        for part in parts:
            self.board.put(Status(part, State.READY, "well"))
        registry = CollectorRegistry()
        self.figures = Figures()
        registry.register(self.figures)
        self.now = 0.0
        self.samples = Samples(registry, lambda: self.now)
        watch = stack.enter_context(DeadLetterWatch(lambda: DeadLetterStore.of(self.config), lambda: True))
        self.view = View(
            self.board,
            self.samples,
            lambda: self.config,
            lambda: snapshot,
            census=watch.census,
            state_of_letter=watch.state,
            peers=lambda: PEERS,
        )
        viewer = ViewerConfig(username="eve", password="look")
        access = HttpConfig("127.0.0.1", 0, username="anna", password="pass", viewer=viewer)
        server = stack.enter_context(HttpServer(access, application(self.board, registry, pages=pages(self.view))))
        self.plain_url = server.url
        self.url = server.url.replace("//", "//anna:pass@")
        self.viewer_url = server.url.replace("//", "//eve:look@")
        self.census = watch.census

    def flow(self, steps: int = 4) -> None:
        for _ in range(steps):
            self.now += 5
            self.figures.set(JOURNALED, self.now * 130, "s")
            self.figures.set(ROUTED, self.now * 120, "orders", "orders")
            self.figures.set(FAILED, self.now, "orders", "key-not-found", "dead-letter")
            self.figures.set(LAG_RECORDS, 3, "0")
            self.samples.take()
