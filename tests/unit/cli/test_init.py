"""`jms-bridge init`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from engine.cli.config import Broker
from engine.explain import Ending, explain
from engine.message import BodyType, Message
from routes.config import lint, loads
from tests.commands import exit_code


def test_what_it_writes_has_no_fault_and_passes_its_own_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code("init") == 0
    assert lint(Path("jms-bridge.properties")).faults == ()
    assert exit_code("test") == 0


def test_it_makes_the_folder_and_says_what_comes_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "etc/bridge/payments.properties"
    assert exit_code("init", str(file)) == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert f"jms-bridge run -c {file}" in capsys.readouterr().err


def test_programs_are_told_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.properties"
    assert exit_code("init", "--json", str(file)) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert told == [{"file": str(file)}, {"file": str(tmp_path / "routes.test.yaml")}]


def test_a_properties_file_that_is_there_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "jms-bridge.properties"
    file.write_text("mine")
    assert exit_code("init", str(file)) == 64
    assert list(tmp_path.iterdir()) == [file]
    assert file.read_text() == "mine"
    assert f"{file} is there already and stays as it is; name another file\n" in capsys.readouterr().err


def test_tests_that_are_there_stay_beside_another_properties_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, tests = tmp_path / "other.properties", tmp_path / "routes.test.yaml"
    tests.write_text("mine")
    assert exit_code("init", str(file)) == 0
    assert lint(file).config
    assert tests.read_text() == "mine"
    assert f"{file} is there; {tests} was, and stays as it is. Next: " in capsys.readouterr().err
    file.unlink()
    assert exit_code("init", "--json", str(file)) == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(file)}


@pytest.mark.parametrize("broker", [None, *Broker])
def test_no_message_of_a_first_day_stops_the_bridge_or_is_dropped(tmp_path: Path, broker: Broker | None) -> None:
    file = tmp_path / "mq.properties"
    assert exit_code("init", *(() if broker is None else ("--from", broker)), str(file)) == 0
    # As if the jars of the client were there.
    text = re.sub(r"(?m)^((?:source|sink)\.\w+)\.class-path=.*", r"\1.packages=a.b:c:1", file.read_text())
    config = loads(text)
    addresses = [address for source in config.sources for address in source.destinations]
    maps = [
        Message(b'{"a": 1}', BodyType.MAP, {"JMSMessageID": "ID:1", "JMSDestination": str(address)})
        for address in addresses
    ]
    ended = [explain(message.to_record(), config) for message in maps]
    assert {each.ending for each in ended} == {Ending.DEAD_LETTER}
    assert "body-not-convertible" in {each.reason for each in ended}
    other = Message(b"x", headers={"JMSMessageID": "ID:1", "JMSDestination": "queue:nobody"})
    assert (explain(other.to_record(), config).ending, config.routing.on_soft_failure) == ("dead-letter", "dead-letter")


@pytest.mark.parametrize("broker", list(Broker))
def test_a_file_for_a_broker_has_no_fault_and_no_tests_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], broker: Broker
) -> None:
    file = tmp_path / "mq.properties"
    assert exit_code("init", "--from", broker, str(file)) == 0
    assert f"jms-bridge run -c {file}" in capsys.readouterr().err
    # Some clients do not come from a repository, so their jars have to be there.
    is_there = broker not in (Broker.OPENMQ, Broker.TIBCO_EMS, Broker.WEBLOGIC)
    assert [fault.message.partition("'")[0] for fault in lint(file).faults] == ["there is no file "] * (
        not is_there
    ) * 2
    assert list(tmp_path.iterdir()) == [file]
    assert exit_code("init", "--from", "mq-series", str(file)) == 64
