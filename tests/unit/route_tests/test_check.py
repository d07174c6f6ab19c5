"""Tests of routes as `jms-bridge test` runs them."""

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.commands import finished

ROOT = Path(__file__).parents[3]
CONFIG = """\
bridge.id=b1
source.s.type=stomp
source.s.url=stomp://127.0.0.1:1
source.s.destinations=queue:orders
sink.events.type=nats
routing.dead-letter-topic=dead
routing.headers=typed
routes.eu.in.include=msg.address==orders && msg.header.region==eu
routes.eu.out.topic=nats:orders.${msg.header.city}
routes.eu.on-soft-failure=dead-letter
routes.orders.in.include=msg.address==orders
routes.orders.out.topic=orders
routes.orders.conv.key=msg.header.CorrelationId
routes.rest.in.include=msg.address==rest
routes.rest.out.topic=rest
"""
TESTS = """\
tests:
- name: paris
  message: {address: queue:orders, properties: {region: eu, city: paris}}
  expect: {route: eu, destination: "events:orders.paris", topic: jms-bridge.sink.events, headers: {jms.city: paris}}
- name: paris, by the type of the sink
  message: {address: queue:orders, properties: {region: eu, city: paris}}
  expect: {destination: "nats:orders.paris"}
- name: nowhere to be sent
  message: {address: queue:orders, properties: {region: eu}}
  expect: {route: eu, dead-letter: destination-unresolved, topic: dead}
- name: typed headers
  message: {address: queue:orders, headers: {JMSCorrelationID: 7}, properties: {n: {type: int, value: 200}}}
  expect: {destination: "kafka:orders", key: 7, headers: {jms.int.n: {base64: AAAAyA==}, jms.n: ~}}
- name: no key
  message: {address: queue:orders}
  expect: {route: orders, stop: key-not-found}
- name: unmatched
  message: {address: queue:other}
  expect: none
"""

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Call:
    (tmp_path / "b.properties").write_text(CONFIG)
    (tmp_path / "routes.test.yaml").write_text(TESTS)

    def run(*arguments: str) -> tuple[int, str, str]:
        code, out, err = finished(capsys, "test", "-c", tmp_path / "b.properties", *arguments)
        return code, out.replace(f"{tmp_path}/", ""), err.replace(f"{tmp_path}/", "")

    return run


def test_tests_that_pass_are_listed_with_the_routes_that_none_is_for(call: Call) -> None:
    code, out, err = call()
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "ok    paris",
        "ok    paris, by the type of the sink",
        "ok    nowhere to be sent",
        "ok    typed headers",
        "ok    no key",
        "ok    unmatched",
        "6 tests, 0 failed; routes without a test: rest",
    ]


def test_a_test_that_fails_says_what_was_expected_where_and_what_was_found(call: Call, tmp_path: Path) -> None:
    (tmp_path / "routes.test.yaml").write_text(
        "tests:\n- message: {address: queue:orders, headers: {JMSCorrelationID: 7}}\n"
        "  expect:\n    destination: rest\n    key: 8\n    headers: {jms.x: ''}\n"
        "- message: {address: queue:other}\n  expect: {route: rest, key: 1}\n"
        "- message: {address: queue:rest}\n  expect: none\n"
    )
    code, out, _ = call()
    assert code == 1
    assert out.splitlines() == [
        "FAIL  test 1",
        "      routes.test.yaml:4:18: destination",
        "        expected  kafka:rest",
        "        found     kafka:orders",
        "      routes.test.yaml:5:10: key",
        "        expected  8",
        "        found     7",
        "      routes.test.yaml:6:22: header jms.x",
        "        expected  (empty)",
        "        found     (none)",
        "FAIL  test 2",
        "      routes.test.yaml:8:11: result",
        "        expected  published",
        "        found     unrouted: unmatched",
        "      routes.test.yaml:8:19: route",
        "        expected  rest",
        "        found     (none)",
        "FAIL  test 3",
        "      routes.test.yaml:10:11: result",
        "        expected  none",
        "        found     published",
        "3 tests, 3 failed; routes without a test: eu",
    ]
    assert "route    orders: takes it" in call("--explain")[1]


def test_all_destinations_and_routes_of_a_message_are_compared(call: Call, tmp_path: Path) -> None:
    config = CONFIG.replace("out.topic=orders\n", "out.topic=orders, events:all\n")
    (tmp_path / "b.properties").write_text(config + "routes.eu.in.continue=true\n")
    message = "message: {address: queue:orders, headers: {JMSCorrelationID: 7}, properties: {region: eu, city: rome}}"
    (tmp_path / "routes.test.yaml").write_text(
        f"tests:\n- {message}\n"
        '  expect: {route: "eu, orders", destination: "nats:orders.rome, orders, nats:all", headers: {jms.city: rome}}'
        "\n"
        f"- {message}\n  expect: {{route: orders, destination: orders}}\n"
        f"- {message.replace(', city: rome', '')}\n  expect: {{dead-letter: destination-unresolved}}\n"
    )
    code, out, _ = call()
    assert code == 1
    assert out.splitlines() == [
        "ok    test 1",
        "FAIL  test 2",
        "      routes.test.yaml:5:19: route",
        "        expected  orders",
        "        found     eu, orders",
        "      routes.test.yaml:5:40: destination",
        "        expected  kafka:orders",
        "        found     events:orders.rome, kafka:orders, events:all",
        "FAIL  test 3",
        "      routes.test.yaml:7:25: result",
        "        expected  dead-letter: destination-unresolved",
        "        found     dead-letter: destination-unresolved, published",
        "3 tests, 2 failed; routes without a test: rest",
    ]


def test_programs_get_json_and_junit_xml(call: Call, tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text("tests:\n- {message: {address: queue:rest}, expect: {key: x}}\n")
    report = tmp_path / "report.xml"
    files = [str(tmp_path / name) for name in ("routes.test.yaml", "more.yaml")]
    code, out, _ = call("--json", "--junit", str(report), *files)
    results = [json.loads(line) for line in out.splitlines()]
    assert code == 1
    assert [result["passed"] for result in results] == [True] * 6 + [False]
    assert results[-1] == {
        "name": "test 1",
        "file": "more.yaml",
        "line": 2,
        "passed": False,
        "differences": [{"what": "key", "line": 2, "column": 50, "expected": "x", "found": "ID:example"}],
    }
    first, second = ET.fromstring(report.read_bytes())  # noqa: S314 - our own
    assert (first.get("tests"), first.get("failures"), second.get("failures")) == ("6", "0", "1")
    failure = second.find("testcase/failure")
    assert failure is not None
    assert failure.text is not None
    assert "expected  x" in failure.text


def test_faults_in_tests_or_configuration_are_exit_code_2(call: Call, tmp_path: Path) -> None:
    (tmp_path / "routes.test.yaml").write_text("tests:\n- {message: {}, expect: none, nam: x}\n")
    code, out, err = call()
    assert (code, out) == (2, "")
    assert err.startswith("routes.test.yaml:2:31: error: unknown key 'nam' in a test (did you mean 'name'?)\n")
    (tmp_path / "b.properties").write_text("bridge.ide=b\n")
    assert call()[0] == 2
    code, _, err = call(str(tmp_path / "gone.yaml"))
    assert code == 2


def test_the_tests_of_the_shipped_routes_pass_and_each_route_has_one(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = finished(capsys, "test", "-c", ROOT / "engine/cli/templates/jms-bridge.properties")
    assert code == 0, out
    assert out.splitlines()[-1].endswith(" tests, 0 failed")


def test_a_body_that_leaves_as_a_file_is_expected_by_its_size(call: Call, tmp_path: Path) -> None:
    claims = "claim-check.folder=bodies\nroutes.rest.out.claim-check-above=1KiB\n"
    (tmp_path / "b.properties").write_text(CONFIG + claims)
    case = "- message: {{address: queue:rest, body: {}}}\n  expect: {{claim: {}}}\n"
    cases = [("x" * 2000, "2000"), ("x" * 1024, "~"), ("x" * 1024, "1024")]
    (tmp_path / "routes.test.yaml").write_text("tests:\n" + "".join(case.format(*each) for each in cases))
    status, out, _ = call()
    assert status == 1
    assert "routes.test.yaml:7:19: claim\n        expected  1024\n        found     (none)\n" in out
    assert "3 tests, 1 failed" in out
    assert not (tmp_path / "bodies").exists()
