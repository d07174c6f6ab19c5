"""One more broker beside Artemis: ActiveMQ Classic 6, over each protocol, by some of the cases of `make brokers`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.errors import SetupError
from tests.brokers.broker import Protocol
from tests.brokers.cases import CASES
from tests.brokers.classic import Classic6
from tests.brokers.results import read
from tests.brokers.run import run_cases

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from engine.embedded import EmbeddedKafka

_CASES = ("headers to the bridge", "redelivery", "selectors", "wrong password")


@pytest.fixture(scope="module")
def classic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Classic6]:
    try:
        with Classic6(tmp_path_factory.mktemp("classic")) as broker:
            yield broker
    except SetupError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("protocol", Protocol)
def test_classic_does_what_the_table_says(
    classic: Classic6, protocol: Protocol, kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    cases = {name: CASES[name] for name in _CASES}
    found = {result.case: result for result, _ in run_cases("classic6", classic, [protocol], cases, kafka, tmp_path, 0)}
    written = {each.case: each for each in read() if (each.broker, each.protocol) == ("classic6", protocol)}
    assert {name: (each.verdict, list(each.notes)) for name, each in found.items()} == {
        name: (each.verdict, list(each.notes)) for name, each in written.items() if name in found
    }
