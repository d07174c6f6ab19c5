"""The page about the routing language says what is so: its examples, its table of truth, its faults."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.message import Message
from routes.errors import PredicateError
from routes.predicate import evaluate, parse
from routes.properties import JmsType, Property

PAGE = (Path(__file__).parents[3] / "docs" / "routing-language.md").read_text(encoding="utf-8")
FAULTS = re.findall(r"```fault\n(.+?)\n(.+?)\n```", PAGE, re.DOTALL)
EXAMPLES = "".join(re.findall(r"```predicate\n(.+?)```", PAGE, re.DOTALL)).splitlines()
SPELLINGS = re.findall(r"^\| `(.+==?.+)` \| `(.+=.+|.+<>.+)` \|$", PAGE, re.MULTILINE)
TRUTHS = re.findall(r"^\| `(.+)` \| (true|false) \| (true|false) \| (true|false) \| (\w+) \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("text", EXAMPLES)
def test_its_examples_are_predicates(text: str) -> None:
    assert parse(text).text == text


@pytest.mark.parametrize(("short", "selector"), SPELLINGS)
def test_its_two_spellings_are_the_same(short: str, selector: str) -> None:
    assert parse(short.replace("\\|", "|")) == parse(selector)


@pytest.mark.parametrize(("text", *("as_text", "as_int", "as_boolean", "missing")), TRUTHS)
def test_its_table_of_truth_is_right(text: str, as_text: str, as_int: str, as_boolean: str, missing: str) -> None:
    predicate = parse(text)
    values = (Property("2", JmsType.STRING), Property("2", JmsType.INT), Property("true", JmsType.BOOLEAN))
    truths = [evaluate(predicate, Message(properties={"p": value}).lookup) for value in values]
    truths.append(evaluate(predicate, Message().lookup))
    assert ["unknown" if truth is None else str(truth).lower() for truth in truths] == [
        *(as_text, as_int, as_boolean, missing)
    ]


@pytest.mark.parametrize(("text", "shown"), FAULTS)
def test_its_faults_read_as_shown(text: str, shown: str) -> None:
    with pytest.raises(PredicateError) as raised:
        parse(text)
    assert str(raised.value) == shown


def test_all_of_them_were_found() -> None:
    assert (len(EXAMPLES), len(SPELLINGS), len(TRUTHS), len(FAULTS)) == (14, 3, 14, 6)
