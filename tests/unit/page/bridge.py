"""A bridge that only has figures, and its status page."""

from __future__ import annotations

import re
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from engine.looks.action import AuditedAction
from engine.looks.entry import UserEntry
from engine.looks.log import LookLog
from engine.looks.look import Look
from engine.page.app import pages
from engine.page.view import INTERVAL_SECONDS, Samples, View
from engine.telemetry.http import application
from engine.telemetry.http_login import HttpLogin
from engine.telemetry.http_section import HttpConfig, ViewerConfig
from engine.telemetry.meters import Figures
from engine.telemetry.status import State, Status, StatusBoard
from routes.config.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.dead_letters.state import LetterState
    from engine.kafka.reader import Position
    from engine.looks.log import LookTopic
    from engine.telemetry.control import Controlled
    from engine.telemetry.http import Standing
    from engine.telemetry.report import PeerReport, Traffic
    from engine.telemetry.status import DeadLetterCounts
    from engine.topologies.question import StateAnswer, StateQuestion
    from routes.errors import BridgeError

__all__ = ["CONFIGURATION", "LOGIN", "VIEWER", "NotedLooks", "Page"]

HOSTILE = "<script>alert(1)</script>\"'&\x1b[31m\u202e"
CONFIGURATION = """\
bridge.id=b1
kafka.bootstrap.servers=127.0.0.1:1
source.jms.type=stomp
source.jms.url=stomp://127.0.0.1:1
source.jms.username=me
source.jms.password=geheim
source.jms.destinations=queue:orders
sink.nats.type=nats
sink.nats.url=nats://127.0.0.1:1
routes.orders.in.include=msg.address==orders AND region = 'emea'
routes.orders.out.topic=orders
routes.orders.conv.key=msg.header.CorrelationId
routes.events.in.include=msg.address LIKE 'events.%'
routes.events.in.exclude=msg.header.Type==test
routes.events.out.topic=nats:events
routing.dead-letter-topic=dead
routing.on-soft-failure=dead-letter
"""
LOGIN = {"Authorization": "Basic " + b64encode(b"anna:pass").decode()}
VIEWER = {"Authorization": "Basic " + b64encode(b"eve:look").decode()}
_PARTS = ("router", "source:jms", "sink:nats")


class NotedLooks(LookLog):
    """Audit of looks or actions in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.looks: list[Look] = []
        self.actions: list[AuditedAction] = []
        self.error: BridgeError | None = None

    def _write(self, topic: LookTopic, entry: UserEntry) -> None:
        if self.error:
            raise self.error
        if isinstance(entry, AuditedAction):
            self.actions.append(entry)
        elif isinstance(entry, Look):
            self.looks.append(entry)


class Page:
    """The page of a bridge; `client` asks it."""

    def __init__(
        self,
        folder: Path,
        text: str = CONFIGURATION,
        *,
        login: bool = False,
        standing: Standing | None = None,
        peers: bool = False,
        control: Controlled | None = None,
    ) -> None:
        file = folder / "jms-bridge.properties"
        file.write_text(text)
        self.snapshot = Snapshot.take(file)
        self.config = self.snapshot.load()
        self.board = StatusBoard(_PARTS)
        for name in _PARTS:
            self.board.put(Status(name, State.READY, "well"))
        self.registry = CollectorRegistry()
        self.figures = Figures()
        self.registry.register(self.figures)
        self.now = 0.0
        self.elsewhere: list[Traffic] = []
        self.samples = Samples(self.registry, lambda: self.now, lambda: tuple(self.elsewhere))
        self.census: DeadLetterCounts | None = None
        self.state_of_letter: Callable[[Position], LetterState | None] = lambda _: None
        self.reload: Mapping[str, object] = {}
        self.peers: list[PeerReport] = []
        """Shown with `peers=True`."""
        self.answer: StateAnswer | None = None
        """What a topology says to a question."""
        self.questions: list[tuple[str, StateQuestion]] = []

        def ask(topology: str, question: StateQuestion, _: float) -> StateAnswer | None:
            self.questions.append((topology, question))
            return self.answer

        self.looks, self.actions = NotedLooks(), NotedLooks()
        self.view = view = View(
            self.board,
            self.samples,
            lambda: self.config,
            lambda: self.snapshot,
            lambda: self.reload,
            standing,
            lambda: self.census,
            lambda position: self.state_of_letter(position),
            peers=(lambda: tuple(self.peers)) if peers else None,
            ask=ask,
            control=control,
            looks=self.looks,
            actions=self.actions,
        )
        viewer = ViewerConfig(username="eve", password="look")
        access = HttpConfig("127.0.0.1", 0)
        if login:
            access = HttpConfig("127.0.0.1", 0, username="anna", password="pass", viewer=viewer)
        self.served = application(self.board, self.registry, standing, pages=pages(view))
        app = HttpLogin(self.served, access, frozenset())
        self.client = TestClient(app, "http://127.0.0.1")

    def sample(self) -> None:
        """Some seconds later."""
        self.now += INTERVAL_SECONDS
        self.samples.take()

    def seal(self, path: str, headers: Mapping[str, str] | None = None) -> str:
        """The signature in the form of a page."""
        found = re.search(r'name="seal" value="([^"]+)"', self.client.get(path, headers=headers).text)
        assert found
        return found[1]

    def text(self, path: str) -> str:
        """A page that is there."""
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text
