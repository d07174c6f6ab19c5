"""Masks of routes: what is wrong with their keys is told at its place, and their secret nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.router.past_routes import routes_text
from engine.telemetry.logging import secrets_of
from routes.config import lint_text, load, show
from routes.config.load import loads_routes
from routes.errors import ConfigurationError
from routes.predicate.mask import MaskMethod
from tests.unit.config.start import START

SECRET = "0123456789abcdef0123456789abcdef"
ENV = {"S": SECRET, "SHORT": "hunter2"}
HASH = "routes.r.out.mask=msg.body.a\nroutes.r.out.mask-with=hash\n"
SECRET_LINE = "routes.r.out.mask-secret=${env:S}\n"
EXAMPLES = 'as in msg.body.card, msg.body.lines[*].iban or msg.body."odd name"'


def told(text: str) -> list[str]:
    faults = [str(fault) for fault in lint_text(START + text, env=ENV).faults]
    assert not any(secret in fault for fault in faults for secret in ENV.values())
    return [fault.splitlines()[0] for fault in faults]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("out.mask=", f"6:19: error: a path is missing between commas ({EXAMPLES})"),
        ("out.mask=msg.body.a,, msg.body.b", f"6:30: error: a path is missing between commas ({EXAMPLES})"),
        ("out.mask=,msg.body.a", f"6:19: error: a path is missing between commas ({EXAMPLES})"),
        ("out.mask=msg.body.a, msg.body.a", "6:31: error: 'msg.body.a' is listed twice (name each path once)"),
        ("out.mask=msg.body", f"6:19: error: 'msg.body' is the whole body (name fields of it, {EXAMPLES})"),
        ("out.mask=msg.body.a, card", f"6:31: error: 'card' is not a path into the body ({EXAMPLES})"),
        ("out.mask=msg.header.a", f"6:19: error: 'msg.header.a' is not a path into the body ({EXAMPLES})"),
        ("out.mask=msg.body.a = 1", f"6:19: error: 'msg.body.a = 1' is not a path into the body ({EXAMPLES})"),
        (
            "out.mask=msg.body.a, msg.body.lines[x].b",
            "6:31: error: 'msg.body.lines[x].b': msg.body.lines is not a path into the body (write msg.body.name, "
            'msg.body."odd name", msg.body.lines[0].price, [-1] for the last, [*] for each)',
        ),
        (
            "out.mask=msg.body.a msg.body.b",
            "6:30: error: 'msg.body.a msg.body.b': found 'msg.body.b', expected a comparison, arithmetic, AND, OR or "
            f"the end ({EXAMPLES})",
        ),
        (
            "out.mask=xpath('/a/b')",
            f"6:19: error: 'xpath('/a/b')' leads into XML, and only JSON bodies have masks ({EXAMPLES})",
        ),
        (
            "out.mask-with=remove",
            "6:24: error: route 'r' masks nothing (set routes.r.out.mask, or remove this)",
        ),
        (
            "out.mask=msg.body.a\nroutes.r.out.mask-with=hsh",
            "7:24: error: 'hsh' is not replace, remove or hash (did you mean hash?)",
        ),
        (
            "out.mask=msg.body.a\nroutes.r.out.mask-with=hash",
            "7:24: error: 'hash' needs a secret (as in routes.r.out.mask-secret=${env:MASK_SECRET})",
        ),
        (
            "out.mask=msg.body.a\nroutes.r.out.mask-secret=${env:S}",
            "7:26: error: only 'hash' uses a secret (set routes.r.out.mask-with=hash, or remove this)",
        ),
        (
            "out.mask=msg.body.a\nroutes.r.in.body=xml",
            "6:19: error: 'in.body' says that bodies are XML, and only JSON has masks (remove one)",
        ),
        (
            "out.mask=msg.body.customer\nroutes.r.conv.key=msg.body.customer.id",
            "7:19: error: 'msg.body.customer.id' would leave here as it is, and out.mask has 'msg.body.customer' "
            "(take another value)",
        ),
        (
            "out.mask=msg.body.a[*].b\nroutes.r.conv.key=msg.body.a[-1].b",
            "7:19: error: 'msg.body.a[-1].b' would leave here as it is, and out.mask has 'msg.body.a[*].b' "
            "(take another value)",
        ),
        (
            "out.mask=msg.body[-1]\nroutes.r.conv.key=msg.body[0]",
            "7:19: error: 'msg.body[0]' would leave here as it is, and out.mask has 'msg.body[-1]' "
            "(take another value)",
        ),
    ],
)
def test_faults_of_masks_are_told_at_their_place(text: str, fault: str) -> None:
    assert told(f"routes.r.{text}\n") == [fault]


def test_a_destination_does_not_take_what_is_masked() -> None:
    text = START.replace("topic=t", "topic=t.${msg.body.a}") + "routes.r.out.mask=msg.body.a\n"
    assert [str(fault).splitlines()[0] for fault in lint_text(text).faults] == [
        "5:24: error: 'msg.body.a' would leave here as it is, and out.mask has 'msg.body.a' (take another value)"
    ]


@pytest.mark.parametrize("taken", ["msg.body.b", "msg.body.ab", "msg.body", "msg.body.a[1]"])
def test_other_values_may_be_keys(taken: str) -> None:
    key = f"routes.r.conv.key={taken}\n" if taken != "msg.body" else ""
    assert told(f"routes.r.out.mask=msg.body.a[0], msg.body.a.c\n{key}") == []


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (
            SECRET,
            "8:26: error: the secret of a mask does not stand in this file (write ${env:NAME} or ${file:PATH}: Kafka "
            "keeps the lines of routes, as they are, for the next start)",
        ),
        (
            "${env:S}x",
            "8:26: error: the secret of a mask does not stand in this file (write ${env:NAME} or ${file:PATH}: Kafka "
            "keeps the lines of routes, as they are, for the next start)",
        ),
        (
            "${env:SHORT}",
            "8:26: error: the value has fewer than 32 characters (a random one, as from: openssl rand -hex 32)",
        ),
        ("${env:NONE}", "8:26: error: the environment has no variable 'NONE' (set it before the start)"),
    ],
)
def test_a_secret_is_a_reference_to_a_long_one(value: str, fault: str) -> None:
    assert told(f"{HASH}routes.r.out.mask-secret={value}\n") == [fault]


def test_a_mask_is_read(tmp_path: Path) -> None:
    file = tmp_path / "jms-bridge.properties"
    file.write_text(START + HASH + SECRET_LINE)
    config = load(file, ENV)
    mask = config.routes[0].mask
    assert mask is not None
    assert ([str(path) for path in mask.paths], mask.method, mask.secret) == (["msg.body.a"], MaskMethod.HASH, SECRET)
    assert SECRET in secrets_of(config)
    assert SECRET not in repr(config)
    assert config.secret_variables == {"S"}
    assert [row.value for row in show(file) if row.key.endswith("mask-secret")] == ["${env:S}"]


def test_a_route_without_a_mask_has_none() -> None:
    config = lint_text(START).config
    assert config is not None
    assert config.routes[0].mask is None


def test_the_routes_of_the_last_run_mask_with_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    text = START + HASH + SECRET_LINE
    kept = routes_text(text)
    assert SECRET not in kept
    monkeypatch.setenv("S", SECRET)
    routes, config = loads_routes(kept).routes, lint_text(text).config
    assert config is not None
    assert routes == config.routes
    assert routes[0].mask is not None
    assert routes[0].mask.secret == SECRET


def test_without_the_secret_the_routes_of_the_last_run_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("S", raising=False)
    with pytest.raises(ConfigurationError, match="the environment has no variable 'S'"):
        loads_routes(routes_text(START + HASH + SECRET_LINE))
