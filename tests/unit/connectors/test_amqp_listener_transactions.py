"""Transactions at an AMQP listener without a socket: declared, used, discharged, and undone when a client leaves."""

from __future__ import annotations

from typing import Any

import pytest

from engine.connectors.amqp import performatives
from engine.connectors.amqp.codec.encoding import encode
from engine.connectors.amqp.codec.sections import VALUE, Sections, encode_sections
from engine.connectors.amqp.codec.values import Described, Symbol, UInt, ULong
from engine.connectors.amqp.frames import EMPTY
from engine.connectors.amqp.performatives import Code, Condition, DeliveryState, condition_of, field, outcome_of
from engine.connectors.amqp_listener.session import WINDOW
from tests.unit.connectors.amqp_listener_house import BAD, Client, House, attach, said

COORDINATOR = Described(ULong(0x30), [performatives.symbols(["amqp:local-transactions", "amqp:distributed"])])
CONTROL, DATA = 5, 0
"""Handles of the two links."""


class Controller(Client):
    """A client with a session, a link to the coordinator and one to queue `a`."""

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self.house = house
        self.opened()
        self.coordinate()
        self.sending()
        self._delivery = 0

    def coordinate(self, handle: int = CONTROL) -> list[tuple[int, list[Any]]]:
        return self.say(said(attach(COORDINATOR, handle)))

    def ask(self, code: int | Symbol, *fields: Any, handle: int = CONTROL) -> tuple[int, list[Any]]:
        """The state of what was asked; 0 if there is none yet."""
        descriptor = code if isinstance(code, Symbol) else ULong(code)
        request = encode_sections(Sections(body=VALUE, content=Described(descriptor, list(fields))))
        return self.transfer(request, handle=handle)

    def declare(self) -> bytes:
        code, (identity,) = self.ask(0x31)
        assert code == DeliveryState.DECLARED
        assert isinstance(identity, bytes)
        return identity

    def discharge(self, transaction: bytes, *, fail: bool = False) -> Condition | bool | None:
        """True if it is accepted, False if there is no answer yet, else why not."""
        code, fields = self.ask(0x32, transaction, fail)
        if code in (0, DeliveryState.ACCEPTED):
            return code == DeliveryState.ACCEPTED
        assert code == DeliveryState.REJECTED
        return condition_of(fields[0])

    def post(self, transaction: bytes, body: bytes = b"x", *, settled: bool = False) -> tuple[int, list[Any]]:
        state = Described(ULong(DeliveryState.TRANSACTIONAL), [transaction])
        return self.transfer(body, state, handle=DATA, settled=settled)

    def transfer(
        self, payload: bytes, state: Described | None = None, *, handle: int, settled: bool = False
    ) -> tuple[int, list[Any]]:
        fields = [UInt(handle), UInt(self._delivery), b"t", UInt(0), settled, False, None, state]
        self._delivery += 1
        answers = self.say(said(encode(Described(ULong(Code.TRANSFER), fields)) + payload))
        return next((outcome_of(field(fields, 4)) for code, fields in answers if code == Code.DISPOSITION), (0, []))


@pytest.fixture
def house() -> House:
    return House()


@pytest.fixture
def client(house: House) -> Controller:
    return Controller(house)


def test_a_coordinator_is_capable_of_local_transactions_alone(house: House) -> None:
    client = Client(house).opened()
    (attached, fields), (flow, credit) = client.say(said(attach(COORDINATOR)))
    assert (attached, fields[6]) == (
        Code.ATTACH,
        Described(ULong(0x30), [performatives.symbols(["amqp:local-transactions"])]),
    )
    assert flow == Code.FLOW
    assert credit[6] > 0


def test_messages_wait_for_the_discharge_and_come_together_in_order(house: House, client: Controller) -> None:
    transaction = client.declare()
    for body in (b"1", b"2"):
        code, (identity, outcome) = client.post(transaction, body)
        assert (code, identity, outcome_of(outcome)) == (
            DeliveryState.TRANSACTIONAL,
            transaction,
            (DeliveryState.ACCEPTED, []),
        )
    assert (house.taken, house.committing) == ([], [])
    assert client.discharge(transaction) is False
    (found,) = house.committing
    assert found.work == [b"1", b"2"]
    found.committed()
    ((code, fields),) = client.say()
    assert (code, fields[1:4], outcome_of(fields[4])) == (Code.DISPOSITION, [3, 3, True], (DeliveryState.ACCEPTED, []))


def test_what_is_not_part_of_a_transaction_goes_its_own_way(house: House, client: Controller) -> None:
    client.post(client.declare(), b"in it")
    client.transfer(b"beside it", handle=DATA)
    assert [each.encoded for each in house.taken] == [b"beside it"]


def test_a_roll_back_undoes_and_is_always_accepted(house: House, client: Controller) -> None:
    transaction = client.declare()
    client.post(transaction, b"1")
    assert client.discharge(transaction, fail=True) is True
    assert (house.committing, house.undone) == ([], [[b"1"]])


def test_a_commit_that_failed_is_rejected_as_rolled_back(house: House, client: Controller) -> None:
    client.discharge(client.declare())
    house.committing[0].rolled_back("Kafka said no")
    ((_, fields),) = client.say()
    code, (error,) = outcome_of(fields[4])
    assert (code, condition_of(error)) == (
        DeliveryState.REJECTED,
        Condition("amqp:transaction:rollback", "Kafka said no"),
    )


def test_a_client_whose_transaction_is_in_doubt_is_left(house: House, client: Controller) -> None:
    client.discharge(client.declare())
    house.committing[0].in_doubt("nobody knows")
    ((code, fields),) = client.say()
    assert (code, condition_of(fields[0])) == (Code.CLOSE, Condition("amqp:internal-error", "nobody knows"))


def test_a_message_that_cannot_be_taken_dooms_its_transaction_and_frees_what_it_held(
    house: House, client: Controller
) -> None:
    transaction = client.declare()
    client.post(transaction, b"1")
    for body in (BAD, b"2"):
        _, (_, outcome) = client.post(transaction, body)
        assert outcome_of(outcome)[0] == DeliveryState.REJECTED
    assert house.undone == [[b"1"]]
    assert client.discharge(transaction) == Condition("amqp:transaction:rollback", "bad (amqp:decode-error)")
    assert (house.committing, len(house.undone)) == ([], 1)

    doomed = client.declare()
    client.post(doomed, BAD)
    assert client.discharge(doomed, fail=True) is True


def test_two_transactions_do_not_mix(house: House, client: Controller) -> None:
    first, second = client.declare(), client.declare()
    client.post(second, b"2")
    client.post(first, b"1")
    client.discharge(second)
    assert client.discharge(first, fail=True) is True
    assert ([each.work for each in house.committing], house.undone) == ([[b"2"]], [[b"1"]])


def test_a_transaction_is_no_other_sessions(house: House, client: Controller) -> None:
    other = Controller(house)
    transaction = client.declare()
    unknown = Condition("amqp:transaction:unknown-id", "there is no such transaction any more")
    assert other.discharge(transaction) == unknown
    code, (error,) = other.post(transaction)
    assert (code, condition_of(error)) == (
        DeliveryState.REJECTED,
        Condition("amqp:transaction:unknown-id", "a message of a transaction that is not there any more"),
    )
    assert client.discharge(transaction, fail=True) is True


def test_a_transaction_is_discharged_once(client: Controller) -> None:
    transaction = client.declare()
    client.discharge(transaction)
    for fail in (True, False):
        condition = client.discharge(transaction, fail=fail)
        assert isinstance(condition, Condition)
        assert condition.name == "amqp:transaction:unknown-id"


def test_messages_of_a_transaction_use_up_no_credit(client: Controller) -> None:
    transaction = client.declare()
    for _ in range(3 * WINDOW):
        code, _ = client.post(transaction)
        assert code == DeliveryState.TRANSACTIONAL
    assert not client.peer.ended


def test_a_message_in_several_transfers_is_part_of_what_the_first_says(house: House, client: Controller) -> None:
    transaction = client.declare()
    state = Described(Symbol("amqp:transactional-state:list"), [transaction])
    for fields, part in (([UInt(9), b"t", UInt(0), False, True, None, state], b"a"), ([], b"b")):
        client.say(said(encode(Described(ULong(Code.TRANSFER), [UInt(DATA), *fields])) + part))
    client.discharge(transaction)
    assert house.committing[0].work == [b"ab"]


def test_settled_messages_are_part_of_it_without_an_answer(house: House, client: Controller) -> None:
    transaction = client.declare()
    assert client.post(transaction, b"1", settled=True) == (0, [])
    client.discharge(transaction)
    assert house.committing[0].work == [b"1"]


def test_a_settled_message_of_an_unknown_transaction_ends_its_link(client: Controller) -> None:
    fields = [
        UInt(DATA),
        UInt(0),
        b"t",
        UInt(0),
        True,
        False,
        None,
        Described(ULong(DeliveryState.TRANSACTIONAL), [b"?"]),
    ]
    ((code, why),) = client.say(said(encode(Described(ULong(Code.TRANSFER), fields)) + b"x"))
    condition = condition_of(why[2])
    assert code == Code.DETACH
    assert condition is not None
    assert condition.name == "amqp:transaction:unknown-id"


@pytest.mark.parametrize(
    "last", [performatives.detach(CONTROL, closed=True), performatives.end(), performatives.close()]
)
def test_who_leaves_without_a_discharge_has_rolled_back(house: House, client: Controller, last: bytes) -> None:
    client.post(client.declare(), b"1")
    client.discharge(client.declare())
    client.say(said(last))
    assert (house.undone, len(house.committing)) == ([[b"1"]], 1)
    # Who is not there any more is told nothing.
    house.committing[0].committed()
    assert client.say() == []


def test_a_connection_that_is_lost_rolls_back(house: House, client: Controller) -> None:
    client.post(client.declare(), b"1")
    client.peer.gone()
    assert house.undone == [[b"1"]]


@pytest.mark.parametrize(
    ("code", "fields", "name"),
    [
        (0x31, [b"global"], "amqp:not-implemented"),
        (0x32, [], "amqp:transaction:unknown-id"),
        (0x32, ["x"], "amqp:transaction:unknown-id"),
        (0x24, [], "amqp:decode-error"),
    ],
)
def test_what_a_coordinator_does_not_do_is_rejected(
    client: Controller, code: int, fields: list[Any], name: str
) -> None:
    outcome, (error,) = client.ask(code, *fields)
    condition = condition_of(error)
    assert outcome == DeliveryState.REJECTED
    assert condition is not None
    assert condition.name == name
    client.declare()


def test_requests_by_name_are_understood(client: Controller) -> None:
    code, (identity,) = client.ask(Symbol("amqp:declare:list"))
    assert code == DeliveryState.DECLARED
    assert client.ask(Symbol("amqp:discharge:list"), identity, True)[0] == DeliveryState.ACCEPTED


def test_the_transactions_of_a_client_are_bounded(client: Controller) -> None:
    for _ in range(256):
        client.declare()
    code, (error,) = client.ask(0x31)
    condition = condition_of(error)
    assert code == DeliveryState.REJECTED
    assert condition is not None
    assert condition.name == "amqp:resource-limit-exceeded"


def test_a_request_that_could_have_no_answer_ends_the_link(client: Controller) -> None:
    request = encode_sections(Sections(body=VALUE, content=Described(ULong(0x31), [])))
    fields = [UInt(CONTROL), UInt(0), b"t", UInt(0), True]
    ((code, why),) = client.say(said(encode(Described(ULong(Code.TRANSFER), fields)) + request))
    condition = condition_of(why[2])
    assert code == Code.DETACH
    assert condition is not None
    assert condition.name == "amqp:not-allowed"
    client.say(said(performatives.detach(CONTROL, closed=True)))
    client.coordinate()
    client.declare()


@pytest.mark.parametrize("payload", [b"\xff", b"", b"\x00\x53\x77", b"x" * 5000])
def test_a_request_that_is_no_message_does_no_harm(house: House, payload: bytes) -> None:
    client = Controller(house)
    client.post(client.declare(), b"1")
    state, _ = client.transfer(payload, handle=CONTROL)
    assert state == DeliveryState.REJECTED or client.peer.ended
    client.peer.gone()
    assert house.undone == [[b"1"]]


def at(client: Controller, now: float) -> None:
    """A client that shows itself at that second."""
    client.peer.feed(EMPTY, now)
    client.peer.tick(now)


def test_a_transaction_that_takes_too_long_is_rolled_back_and_its_client_is_told(
    client: Controller, house: House
) -> None:
    unused, transaction = client.declare(), client.declare()
    client.post(transaction, b"1")
    client.post(transaction, b"2")
    at(client, 119.9)
    assert house.undone == []
    at(client, 120.1)
    assert house.undone == [[b"1", b"2"]]

    client.post(transaction, b"3")
    condition = client.discharge(transaction)
    assert isinstance(condition, Condition)
    assert condition.name == "amqp:transaction:timeout"
    assert "120 s" in condition.description
    assert house.committing == []
    # One that nothing was done in has no age.
    assert client.discharge(unused) is False
    assert len(house.committing) == 1


def test_a_transaction_that_is_discharged_does_not_time_out(client: Controller, house: House) -> None:
    transaction = client.declare()
    client.post(transaction, b"1")
    client.discharge(transaction)
    at(client, 1000.0)
    assert house.undone == []
    house.committing[0].committed()
