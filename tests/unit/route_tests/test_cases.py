"""Files with tests of routes: what they say, and what can be wrong with them."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.message import BodyType, Message
from engine.route_tests import Case, read_cases
from routes.errors import ConfigurationError
from routes.properties import JmsType, Property


def read(folder: Path, text: str | bytes) -> tuple[Case, ...]:
    file = folder / "t.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_cases(file)


def message(folder: Path, text: str) -> Message:
    (case,) = read(folder, f"tests:\n- message: {text}\n  expect: none\n")
    return Message.from_record(case.record)


def faults(folder: Path, text: str | bytes) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        read(folder, text)
    return [str(fault).replace(f"{folder}/", "") for fault in caught.value.faults]


def test_a_message_has_fields_typed_properties_and_a_body(tmp_path: Path) -> None:
    found = message(
        tmp_path,
        "{address: queue:a, headers: {CorrelationId: 042}, body: hello, properties: "
        "{region: no, at: 1:30, n: 5, d: 1.50, ok: true, none: ~, f: {type: float, value: 1.5}}}",
    )
    assert found.headers == {
        "JMSMessageID": "ID:example",
        "JMSDeliveryMode": "PERSISTENT",
        "JMSDestination": "queue:a",
        "JMSCorrelationID": "042",
    }
    assert found.properties == {
        "region": Property("no"),
        "at": Property("1:30"),
        "n": Property("5", JmsType.LONG),
        "d": Property("1.5", JmsType.DOUBLE),
        "ok": Property("true", JmsType.BOOLEAN),
        "f": Property("1.5", JmsType.FLOAT),
    }
    assert (found.body, found.body_type) == (b"hello", BodyType.TEXT)


@pytest.mark.parametrize(
    ("written", "body", "kind"),
    [
        ("body: 'é'", "é".encode(), BodyType.TEXT),
        ("body_base64: /w==", b"\xff", BodyType.BYTES),
        ("body_json: {a: [1, x, null, 1.5, no]}", b'{"a": [1, "x", null, 1.5, "no"]}', BodyType.TEXT),
        ("body_file: body", b"\xfe", BodyType.BYTES),
        ("body: '{}', body_type: map", b"{}", BodyType.MAP),
    ],
)
def test_a_body_is_written_in_one_of_several_ways(tmp_path: Path, written: str, body: bytes, kind: BodyType) -> None:
    (tmp_path / "body").write_bytes(b"\xfe")
    found = message(tmp_path, f"{{{written}}}")
    assert (found.body, found.body_type) == (body, kind)


def test_expectations_know_where_they_stand(tmp_path: Path) -> None:
    (case,) = read(
        tmp_path,
        "tests:\n- name: one\n  message: {}\n  expect:\n    route: a\n    key: 7\n"
        "    headers: {x: ~, y: {base64: AAE=}}\n",
    )
    assert (case.name, case.line) == ("one", 2)
    assert [(each.what, each.value, each.place.line, each.place.column) for each in case.expected] == [
        ("result", "published", 5, 5),
        ("route", "a", 5, 12),
        ("key", "7", 6, 10),
        ("header x", None, 7, 18),
        ("header y", b"\x00\x01", 7, 24),
    ]


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("{message: {}}", "t.yaml:2:3: error: the test has no 'expect'"),
        ("{message: {adress: q}, expect: none}", "unknown key 'adress' in 'message' (did you mean 'address'?)"),
        (
            "{message: {}, expect: {destinaton: q}}",
            "unknown key 'destinaton' in 'expect' (did you mean 'destination'?)",
        ),
        ("{message: {}, expect: nothing}", "'expect' is 'nothing' (expected none)"),
        ("{message: {}, expect: {}}", "the test expects nothing (name some of route, topic, destination"),
        ("{message: {}, expect: {skip: key-notfound}}", "is 'key-notfound' (did you mean 'key-not-found'?)"),
        (
            "{message: {}, expect: {skip: key-invalid, key: a}}",
            "'key' is expected of published messages, not with 'skip'",
        ),
        (
            "{message: {}, expect: {skip: key-invalid, stop: key-invalid}}",
            "ends in one way, and there is 'skip' already",
        ),
        ("{message: {body: a, body_json: b}, expect: none}", "a message has one body, and there is 'body' already"),
        ("{message: {body_base64: '!'}, expect: none}", "the text is not base64"),
        ("{message: {body_file: gone}, expect: none}", "'gone' cannot be read: no such file or directory"),
        ("{message: {headers: {JMSTyp: a}}, expect: none}", "'JMSTyp' is not a JMS field (did you mean 'JMSType'?)"),
        ("{message: {properties: {a: {type: int, value: x}}}, expect: none}", "'x' is not a value of type int"),
        (
            "{message: {properties: {a: {type: integer, value: 1}}}, expect: none}",
            "the type of 'a' is 'integer' (did you",
        ),
        ("{message: {properties: [a]}, expect: none}", "'properties' has to be a mapping"),
        ("{message: {properties: {a: 1, a: 2}}, expect: none}", "'a' stands twice in 'properties'"),
        ("{message: {body_json: &a [*a]}, expect: none}", "too large, nested too deeply, or contains itself"),
    ],
)
def test_a_fault_is_told_with_its_place_and_what_to_do(tmp_path: Path, case: str, said: str) -> None:
    (fault,) = faults(tmp_path, f"tests:\n- {case}\n")
    assert fault.startswith("t.yaml:2:")
    assert said in fault
    assert "\n" in fault  # the line itself, with its caret


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("test: []", "t.yaml:1:1: error: unknown key 'test' in the file (did you mean 'tests'?)"),
        ("{}", "there are no tests"),
        ("tests: {", "t.yaml:1:9: error: the file is not YAML: "),
        ("tests: \x07", "the file is not YAML: unacceptable character"),
        ("a: 1\n---\nb: 2\n", "the file is not YAML: but found another document"),
        (b"\xff", "the file is not UTF-8"),
        ("[" * 100_000, "the file is nested too deeply"),
        ("#" * (1024 * 1024 + 1), "more than 1 MiB"),
        ("#" * (1024 * 1024) + "é", "more than 1 MiB"),
    ],
)
def test_what_is_no_file_of_tests_is_one_fault(tmp_path: Path, text: str | bytes, said: str) -> None:
    (fault,) = faults(tmp_path, text)
    assert said in fault


def test_all_faults_are_found_at_once_and_a_name_is_given_once(tmp_path: Path) -> None:
    text = "tests:\n- {name: a, message: {}, expect: none}\n- {name: a, message: {}, expect: none}\n- {x: 1}\n"
    assert [fault.splitlines()[0] for fault in faults(tmp_path, text)] == [
        "t.yaml:4:4: error: unknown key 'x' in a test (known are name, message, expect)",
        "t.yaml:3:3: error: the test in line 2 is also called 'a' (rename one)",
    ]


def test_a_repeated_name_is_told_where_it_stands_although_another_test_is_faulty(tmp_path: Path) -> None:
    text = "tests:\n- {x: 1}\n- {name: a, message: {}, expect: none}\n- {name: a, message: {}, expect: none}\n"
    assert [fault.splitlines()[0] for fault in faults(tmp_path, text)] == [
        "t.yaml:2:4: error: unknown key 'x' in a test (known are name, message, expect)",
        "t.yaml:4:3: error: the test in line 3 is also called 'a' (rename one)",
    ]


def test_aliases_that_would_fill_the_memory_are_a_fault(tmp_path: Path) -> None:
    levels = "".join(f"  a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(9))
    text = f"tests:\n- expect: none\n  message:\n   body_json:\n    a0: &a0 [x]\n{levels.replace('  a', '    a')}"
    (fault,) = faults(tmp_path, text)
    assert "is too large" in fault


@given(st.text("tests:-{}[]&*!|>'\"\n #ab1~?,%", max_size=60))
def test_no_text_makes_reading_crash(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    with suppress(ConfigurationError):
        read(tmp_path_factory.getbasetemp(), text)
