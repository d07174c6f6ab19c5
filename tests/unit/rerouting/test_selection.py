"""Which journal records no route took, by the routes of their time; and the copies of records."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.dead_letters.replay import ReplayOutcome
from engine.kafka.reader import LocatedRecord, Position
from engine.message import COPY_OF, Message
from engine.rerouting.replay import Rerouted, ReroutingTable, copy_of
from engine.rerouting.selection import UnroutedRecords
from engine.router.generation import Start
from engine.router.past_routes import routes_text
from engine.router.position_store import NotedStart
from routes.config import loads

HEAD = "bridge.id=b\nsource.s.type=stomp\nsource.s.destinations=queue:q\n"
ROUTE = "routes.{0}.in.include=msg.address=={0}\nroutes.{0}.out.topic={0}\n"
BURY = "routing.on-unmatched=dead-letter\nrouting.dead-letter-topic=dead\n"
A, B = HEAD + ROUTE.format("a"), HEAD + ROUTE.format("b")
FILES = (A, B, A + ROUTE.format("b"), A + BURY)


def record(address: str, offset: int) -> LocatedRecord:
    made = Message(headers={"JMSDestination": f"queue:{address}"}).to_record()
    return LocatedRecord(Position("j", 0, offset), 0, made)


def starts(*files: str) -> list[NotedStart]:
    """A generation for each ten offsets."""
    return [
        NotedStart(
            Start("j", "id", {0: 10 * number}, {}, "b", routes_text(text), f"run-{number}", f"run-{number - 1}"), 0
        )
        for number, text in enumerate(files, start=1)
    ]


@given(
    files=st.lists(st.sampled_from(FILES), min_size=1, max_size=5),
    today=st.sampled_from(FILES),
    address=st.sampled_from("abc"),
    offset=st.integers(0, 59),
)
def test_a_record_is_unrouted_if_the_routes_of_its_time_did_not_take_it(
    files: list[str], today: str, address: str, offset: int
) -> None:
    unrouted = UnroutedRecords(loads(today), starts(*files), None)
    number = min(offset // 10, len(files)) - 1
    taken = unrouted.takes(record(address, offset))
    assert unrouted.unknown == (number < 0)
    if number >= 0:
        then = files[number]
        assert taken == (f"=={address}\n" not in then and BURY not in then)
    end = unrouted.end(0, 100)
    assert end == (10 * len(files) if files[-1] == today else 100)


def test_without_a_note_nothing_is_known() -> None:
    unrouted = UnroutedRecords(loads(A), [], None)
    assert not unrouted.takes(record("b", 5))
    assert (unrouted.unknown, unrouted.end(0, 7)) == (1, 7)


def test_a_copy_of_a_copy_names_the_one_that_it_repeats() -> None:
    first = copy_of(record("a", 5))
    again = copy_of(LocatedRecord(Position("j", 0, 9), 0, first))
    assert [value for name, value in again.headers if name == COPY_OF] == [b"j:0:9"]


def test_a_table_has_a_bounded_number_of_rows() -> None:
    table = ReroutingTable()
    for number in range(3000):
        table.add(Rerouted(Position("j", 0, number), ReplayOutcome.WOULD_REPLAY, number, f"address-{number}", ("r",)))
    assert len(table.rows) == 1001
    assert (table.rows[0].address, table.rows[0].count) == ("(others)", 2000)
    assert table.count(ReplayOutcome.WOULD_REPLAY) == 3000
