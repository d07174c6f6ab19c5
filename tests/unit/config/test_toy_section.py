"""A new section needs a module in the engine and one line of the registry, here `tests/unit/config/toy_section.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import routes.model
from engine.spark.section import SparkConfig
from engine.telemetry.http_section import HttpConfig
from engine.telemetry.logging import secrets_of
from engine.topologies.section import TopologiesConfig, TopologyConfig
from routes.config import diff, lint_text, loads, reference, show
from routes.section_registry import SECTIONS, registered_sections
from tests.unit.config.toy_section import LampConfig, LampsConfig

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = """\
bridge.id=b1
kafka.bootstrap.servers=127.0.0.1:9
routes.a.in.include=TRUE
routes.a.out.topic=x
"""
LAMPS = "lamps.hall.colour=red\nlamps.door.colour=blue\n"


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line."""
    monkeypatch.setitem(SECTIONS, "lamps", "tests.unit.config.toy_section")


@pytest.mark.usefixtures("registered")
def test_its_keys_are_read_into_settings_of_its_own() -> None:
    secret = "k" * 32
    config = loads(f"{PLAIN}{LAMPS}lamps.watts=50\nlamps.key={secret}\n")
    lamps = config.section(LampsConfig)
    assert lamps == LampsConfig(each=(LampConfig("hall", "red"), LampConfig("door", "blue")), watts=50, secret=secret)
    assert loads(PLAIN).section(LampsConfig) == LampsConfig(each=(), watts=40)
    assert secret in secrets_of(config)
    assert secret not in repr(config)
    assert config.with_section(LampsConfig(each=())).section(LampsConfig).watts == 40


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ("lamps.wats=1\n", "5:1: unknown key 'lamps.wats'; did you mean 'lamps.watts'?"),
        ("lamps.watts=61\n", "5:13: '61' is not a whole number from 1 to 60; "),
        (LAMPS + "lamps.watts=60\n", "7:13: too bright; remove a lamp"),
        (
            "lamps.a+b.colour=red\n",
            "5:1: 'a+b' is not a valid name of a lamp; a-z, A-Z, 0-9, '_' and '-', 100 at most",
        ),
        (
            "lamps.switch=127.0.0.1:8480\n",
            "5:14: port 8480 is also the one of 'http.address'; choose another",
        ),
    ],
)
def test_its_faults_are_found_at_their_place(lines: str, fault: str) -> None:
    found = [f"{each.line}:{each.column}: {each.message}; {each.hint}" for each in lint_text(PLAIN + lines).faults]
    assert fault in found


@pytest.mark.usefixtures("registered")
def test_its_keys_are_documented_shown_and_compared(tmp_path: Path) -> None:
    page = reference()
    assert "## lamps\n\nLamps that show that the bridge runs.\n" in page
    assert "| `lamps.NAME.colour` | name | required | Colour of the lamp. | `red` |" in page
    assert "\nLamps burn.\n" in page
    assert "| `lamps.shape` | `round` | others do not fit |" in page
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text(PLAIN + LAMPS)
    new.write_text(PLAIN + LAMPS.replace("red", "green") + "lamps.watts=40\n")
    assert [(each.key, each.old, each.new) for each in diff(old, new)] == [("lamps.hall.colour", "red", "green")]
    assert ("lamps.watts", "40", "default") in [(row.key, row.value, row.origin) for row in show(old)]


def test_without_its_line_it_is_unknown() -> None:
    assert [each.message for each in lint_text(PLAIN + "lamps.watts=1\n").errors] == ["unknown key 'lamps.watts'"]


def test_the_names_of_the_public_api_lead_to_the_sections() -> None:
    config = loads(f"{PLAIN}spark.a=1\ntopologies.t.build=m:f\n")
    by_name = {name: each.settings for name, each in registered_sections().items() if each.settings}
    assert {name: getattr(config, name) for name in by_name} == {
        name: config.section(kind) for name, kind in by_name.items()
    }
    assert routes.model.HttpConfig is HttpConfig
    assert routes.model.TopologyConfig is TopologyConfig
    assert config.section(TopologiesConfig)[:1] == (TopologyConfig("t", "m:f"),)
    assert dict(config.section(SparkConfig)) == {"spark.a": "1"}
    with pytest.raises(AttributeError, match="'Config' object has no attribute 'journall'"):
        getattr(config, "journall")  # noqa: B009
    with pytest.raises(AttributeError, match="has no attribute 'LampConfig'"):
        getattr(routes.model, "LampConfig")  # noqa: B009
