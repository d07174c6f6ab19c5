"""One more broker beside Artemis: ActiveMQ Classic 6, over each protocol, by some of the cases of `make brokers`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.errors import SetupError
from tests.brokers.broker import Protocol
from tests.brokers.cases import CASES
from tests.brokers.classic import Classic6
from tests.brokers.results import Verdict, read
from tests.brokers.run import run_cases

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CASES = ("expiry", "redelivery", "selectors", "missing queue")
_NO_KAFKA = "127.0.0.1:1"


@pytest.fixture(scope="module")
def classic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Classic6]:
    try:
        with Classic6(tmp_path_factory.mktemp("classic")) as broker:
            yield broker
    except SetupError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("protocol", Protocol)
def test_classic_does_no_worse_than_the_table_says(classic: Classic6, protocol: Protocol, tmp_path: Path) -> None:
    written = {each.case: each.verdict for each in read() if (each.broker, each.protocol) == ("classic6", protocol)}
    cases = {name: CASES[name] for name in _CASES}

    found = [result for result, _ in run_cases("classic6", classic, [protocol], cases, _NO_KAFKA, tmp_path, 0)]

    assert [each.case for each in found] == list(_CASES)
    assert not [each for each in found if each.verdict is not Verdict.OK and each.verdict is not written[each.case]]
