"""`jms-bridge doctor` where no server runs: exit codes, JSON, the table, and what is left out of it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.embedded.ports import free_ports
from tests.commands import finished

EMBEDDED = """\
bridge.id=b1
embedded.data=var
router.checkpoint=var/checkpoint
http.address=127.0.0.1:{0}
embedded.kafka.port={1}
embedded.artemis.port={2}
embedded.stomp.port={3}
embedded.amqp.port={4}
source.s.type=stomp
source.s.destinations=queue:orders
routes.orders.in.include=msg.address==orders
routes.orders.out.topic=orders
"""
LOGIN = "source.s.url=stomp://127.0.0.1:{0}\nsource.s.username=me\nsource.s.password=hunter2\n"

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "jms-bridge.properties"
    path.write_text(EMBEDDED.format(*free_ports(5)))
    path.chmod(0o600)
    return path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], file: Path) -> Call:
    return lambda *arguments: finished(capsys, "doctor", "-c", str(file), *arguments)


def findings(out: str) -> dict[str, dict[str, Any]]:
    return {finding["name"]: finding for finding in map(json.loads, out.splitlines())}


def test_a_bridge_with_servers_of_its_own_is_well_before_it_has_started_and_nothing_is_made(
    call: Call, file: Path
) -> None:
    code, out, err = call("--json")
    found = findings(out)
    failures = {name for name, finding in found.items() if finding["state"] == "failed"}
    # Whether this machine has Java, and set-up has made the jars, is not the business of this test.
    assert failures <= {"java", "jars"}
    assert err == ""
    assert code == (3 if failures else 0)
    assert found["configuration"]["found"] == f"{file} has no faults"
    assert found["kafka"]["found"] == "the embedded Kafka will be started by the bridge"
    assert {"http.address", "embedded.stomp.port", "router.checkpoint", "disk", "source:s"} <= found.keys()
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_json_has_the_same_members_for_each_finding(call: Call) -> None:
    _, out, _ = call("--json")
    for line in out.splitlines():
        finding = json.loads(line)
        assert finding.keys() == {"name", "state", "found", "remedy", "exit_code"}
        assert (finding["exit_code"] is None) is (finding["state"] != "failed")
        assert bool(finding["remedy"]) is (finding["state"] != "ok")


def test_a_configuration_with_faults_is_told_and_what_depends_on_it_left_out(call: Call, file: Path) -> None:
    file.write_text(file.read_text().replace("out.topic", "out.topik"))
    code, out, _ = call("--json")
    found = findings(out)
    assert code == 2
    assert {"python", "librdkafka", "java", "jars", "the rest"} <= found.keys()
    assert not {"http.address", "kafka", "source:s"} & found.keys()
    faults = [json.loads(line) for line in out.splitlines() if json.loads(line)["name"] == "configuration"]
    assert any("unknown key 'routes.orders.out.topik'" in fault["found"] for fault in faults)
    assert any(fault["remedy"] == "did you mean 'routes.orders.out.topic'?" for fault in faults)


def test_a_value_that_no_client_of_kafka_takes_is_told_as_other_commands_do(call: Call, file: Path) -> None:
    file.write_text(file.read_text() + "kafka.request.timeout.ms=abc\n")
    code, out, err = call("--timeout", "1")
    assert code == 2
    assert "'abc' is not a whole number from 10 to 300000" in out + err
    assert f"{file}:13" in (out + err).replace("\n", "")


def test_a_file_that_is_not_there_is_a_finding(call: Call, file: Path) -> None:
    file.unlink()
    code, out, err = call()
    assert (code, err) == (2, "")
    assert str(file) in out


def test_warnings_of_the_configuration_are_warnings(call: Call, file: Path) -> None:
    file.write_text(file.read_text() + "routing.headers=text\nrouting.headers=text\n")
    _, out, _ = call("--json")
    assert findings(out)["configuration"]["state"] == "warning"


def test_people_get_a_table_with_remedies_below_and_a_count(call: Call, file: Path) -> None:
    (port,) = free_ports(1)
    file.write_text(file.read_text() + LOGIN.format(port))
    _, out, err = call()
    lines = out.splitlines()
    failed = next(number for number, line in enumerate(lines) if line.startswith("✗ source:s "))
    assert re.fullmatch(rf"✗ source:s +stomp://127\.0\.0\.1:{port}: Connection refused", lines[failed])
    assert re.fullmatch(r" +→ start the broker, or correct source\.s\.url", lines[failed + 1])
    assert re.fullmatch(r"\d+ ok, \d+ warnings?, \d+ failed", lines[-1])
    assert err == ""


def test_no_secret_is_shown(call: Call, file: Path) -> None:
    (port,) = free_ports(1)
    # As if a broker repeated it.
    file.write_text(file.read_text() + LOGIN.format(port).replace("hunter2", "refused"))
    _, out, _ = call("--json")
    assert findings(out)["source:s"]["found"] == f"stomp://127.0.0.1:{port}: Connection ******"


def test_a_kafka_that_is_away_is_waited_for_no_longer_than_asked(call: Call, file: Path) -> None:
    (port,) = free_ports(1)
    file.write_text(file.read_text() + f"kafka.bootstrap.servers=127.0.0.1:{port}\n")
    began = time.monotonic()
    code, out, _ = call("--json", "--timeout", "2s")
    seconds = time.monotonic() - began
    found = findings(out)["kafka"]
    assert (found["state"], found["exit_code"], found["remedy"]) == (
        "failed",
        6,
        "start it, or correct kafka.bootstrap.servers",
    )
    assert found["found"].startswith(f"no Kafka at 127.0.0.1:{port} for ")
    assert code in (3, 6)
    # Imports included.
    assert seconds < 10
