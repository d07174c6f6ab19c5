"""What a changed configuration means for the parts of a running bridge."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.supervision.parts import parts
from engine.supervision.revision import RestartNeededError, Revision, RevisionChange, change, given
from engine.topologies.runtime.code import ModuleSource, TopologyCode
from routes.config.snapshot import Snapshot

BASE = """\
bridge.id=b1
kafka.bootstrap.servers=127.0.0.1:1
source.s.type=stomp
source.s.url=stomp://127.0.0.1:1
source.s.destinations=queue:orders
source.s.workers=2
source.t.type=nats
source.t.url=nats://127.0.0.1:1
source.t.destinations=orders
sink.n.type=nats
sink.n.url=nats://127.0.0.1:1
routes.a.in.include=msg.address==orders
routes.a.out.topic=a
routes.b.in.include=msg.address==b
routes.b.out.topic=n:b
"""


def revision(text: str, number: int = 1, only: str | None = None) -> Revision:
    snapshot = Snapshot(Path("b.properties"), text, {})
    config = snapshot.load({})
    return Revision(number, snapshot, config, parts(config, only))


def changed(old: str, new: str) -> RevisionChange:
    return change(revision(old), revision(new, 2))


def names(found: RevisionChange) -> tuple[set[str], set[str], bool]:
    return set(found.leave), {part.name for part in found.join}, found.reroutes


@pytest.mark.parametrize(
    ("old", "new", "leave", "join", "reroutes"),
    [
        ("bridge.id=b1", "# again\nbridge.id : b1", "", "", False),
        ("msg.address==orders", "(msg.address = 'orders')", "", "", False),
        ("topic=a", "topic=a2", "", "", True),
        ("routes.a", "routes.c", "", "", True),
        ("bridge.id", "routing.headers=short\nbridge.id", "", "", True),
        ("bridge.id", "reload.watch=true\nbridge.id", "", "", False),
        ("bridge.id", "find.filters=searches\nbridge.id", "", "", False),
        ("queue:orders", "queue:other", "source:s source:s/2", "source:s source:s/2", False),
        (
            "source.s.workers=2\n",
            "source.s.username=me\nsource.s.password=x\n",
            "source:s source:s/2",
            "source:s",
            False,
        ),
        ("source.s.workers=2", "source.s.workers=3", "source:s source:s/2", "source:s source:s/2 source:s/3", False),
        ("source.t.destinations=orders", "source.t.destinations=x", "source:t", "source:t", False),
        ("sink.n.type=nats", "sink.n.type=nats\nsink.n.username=me\nsink.n.password=x", "sink:n", "sink:n", True),
        ("topic=n:b\n", "topic=n:b\nroutes.b.on-soft-failure=skip\n", "sink:n", "sink:n", True),
        ("topic=a\n", "topic=a\nroutes.a.on-soft-failure=skip\n", "", "", True),
    ],
)
def test_only_parts_that_work_otherwise_are_touched(old: str, new: str, leave: str, join: str, reroutes: bool) -> None:
    assert names(changed(BASE, BASE.replace(old, new))) == (set(leave.split()), set(join.split()), reroutes)


def test_the_router_takes_another_schema_of_a_source() -> None:
    base = f"{BASE}schema.registry.url=http://127.0.0.1:1\nsource.s.schema=avro:a\n"
    touched = {"source:s", "source:s/2"}
    assert names(changed(base, base.replace("avro:a", "avro:a@2"))) == (touched, touched, True)


def test_all_that_may_set_messages_aside_begin_anew_with_another_dead_letter_topic() -> None:
    everyone = {"source:s", "source:s/2", "source:t", "sink:n"}
    assert names(changed(BASE, f"{BASE}routing.dead-letter-topic=dead\n")) == (everyone, everyone, True)


def test_parts_that_run_elsewhere_are_not_touched_here() -> None:
    old, new = (revision(text, only="router") for text in (BASE, BASE.replace("queue:orders", "queue:other")))
    assert change(old, new) == RevisionChange()


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            "bridge.id=b1",
            "bridge.id=b2",
            "bridge.id cannot be changed while the bridge runs; restart it, or set it back",
        ),
        (
            "bridge.id=b1",
            "bridge.id=b1\njournal.topic=j\nkafka.acks=all",
            "kafka.acks, journal.topic, journal.state-topic cannot be changed while the bridge runs; "
            "restart it, or set them back",
        ),
        (
            "sink.n.url=nats://127.0.0.1:1\n",
            "",
            "the change would start the embedded nats, which only a restart of the bridge does",
        ),
    ],
)
def test_what_only_a_restart_can_do_is_refused_with_its_keys(old: str, new: str, why: str) -> None:
    with pytest.raises(RestartNeededError) as caught:
        changed(BASE, BASE.replace(old, new))
    assert str(caught.value) == why


TOPOLOGIES = "".join(f"topologies.{name}.build={name}:build\n" for name in ("x", "y"))


def with_code(number: int, **sources: str) -> Revision:
    """The configuration with two topologies, each of one file."""
    codes = {
        name: TopologyCode((ModuleSource(name, f"/here/{name}.py", (), text.encode()),))
        for name, text in sources.items()
    }
    return replace(revision(BASE + TOPOLOGIES, number), codes=codes)


def test_a_topology_whose_files_change_begins_anew_alone() -> None:
    old, new = with_code(1, x="a = 1", y="b = 1"), with_code(2, x="a = 2", y="b = 1")
    found = change(old, new)
    assert names(found) == ({"topology:x"}, {"topology:x"}, False)
    assert old.changed_files(new) == ["/here/x.py"]
    assert change(old, with_code(2, x="a = 1", y="b = 1")) == RevisionChange()


def test_parts_are_given_the_files_with_the_configuration() -> None:
    sent = with_code(1, x="a = 1", y="b = '\n'")
    assert given(sent.dump()) == (sent.snapshot, sent.codes)
