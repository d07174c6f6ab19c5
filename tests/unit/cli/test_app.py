"""The command line as a whole: help, versions, exit codes, and errors in one line."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import typer.main

from engine.cli import app, main
from engine.cli.reference import reference
from engine.errors import HardFailureError
from tests.commands import finished

GOOD = """\
bridge.id=b1
source.s.type=stomp
source.s.url=stomp://127.0.0.1:1
source.s.username=me
source.s.password=hunter2
source.s.destinations=queue:orders
routes.orders.in.include=msg.address==orders
routes.orders.out.topic=orders
"""

WITH_SINKS = """\
bridge.id=b1
source.s.type=stomp
source.s.destinations=queue:orders
sink.nats.type=nats
sink.jms.type=stomp
sink.jms.url=stomp://127.0.0.1:1
sink.jms.reply-to=queue:bridge.replies
routes.orders.in.include=msg.address==orders
routes.orders.out.topic=nats:orders.${msg.header.region}
routes.rest.in.include=msg.address==rest
routes.rest.out.topic=jms:queue/rest
"""

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return lambda *arguments: finished(capsys, *arguments)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "jms-bridge.properties"
    path.write_text(GOOD)
    return path


@pytest.mark.parametrize(
    "command",
    [
        *(
            "",
            "run",
            "doctor",
            "validate",
            "diff",
            "test",
            "explain",
            "topology",
            "send",
            "receive",
            "request",
            "journal",
        ),
        *("journal tail", "dlt", "dlt list", "dlt show", "dlt replay", "dlt discard", "dlt audit"),
        *("config", "config docs", "config show"),
    ],
)
def test_every_command_has_help_and_those_that_do_something_have_examples(call: Call, command: str) -> None:
    code, out, err = call(*command.split(), "--help")
    assert (code, err) == (0, "")
    assert "Usage: " in out
    if command not in ("journal", "dlt", "config"):
        assert f"jms-bridge {command}".strip() in out.partition("Examples:")[2]


@pytest.mark.parametrize("group", [(), ("journal",), ("dlt",), ("config",)])
def test_without_a_command_there_is_help_and_nothing_else(call: Call, group: tuple[str, ...]) -> None:
    code, out, err = call(*group)
    assert (code, err) == (64, "")
    assert "Usage: " in out


def test_the_version_is_that_of_the_package(call: Call) -> None:
    assert call("--version") == (0, f"{metadata.version('jms-bridge')}\n", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("vaildate",), "No such command 'vaildate'. Did you mean 'validate'? (see jms-bridge --help)"),
        (("send",), "Missing argument 'DESTINATION' (see jms-bridge send --help)"),
        (("send", "queue:q", "--count", "0"), "Invalid value for '--count' / '-n'"),
        (("explain", "--adress", "queue:q"), "No such option: --adress (Possible options: --address, --header)"),
        (("dlt", "replay", "--max", "0"), "Invalid value for '--max'"),
        (("dlt", "replay", "--rate", "0"), "Invalid value for '--rate'"),
        (("dlt", "replay", "--all", "--since", "yesterday"), "--since 'yesterday': expected a time, as 2026-"),
        (("dlt", "discard", "--header", "region"), "--header 'region': expected NAME=VALUE"),
        (("dlt", "show"), "Missing argument 'POSITION' (see jms-bridge dlt show --help)"),
    ],
)
def test_a_wrong_command_line_is_one_line_that_says_where_to_look(
    call: Call, arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = call(*arguments)
    assert (code, out) == (64, "")
    assert err.startswith("jms-bridge: ")
    assert said in err
    assert err.count("\n") == 1


def test_a_configuration_with_faults_shows_all_of_them_with_their_places(call: Call, file: Path) -> None:
    file.write_text(
        GOOD.replace("out.topic", "out.topik") + "routes.b.in.include=msg.address=='x\nroutes.b.out.topic=b\n"
    )
    code, out, err = call("validate", "-c", str(file))
    assert (code, err) == (2, "")
    assert f"{file}:8:1: error: unknown key 'routes.orders.out.topik'" in out
    assert f"{file}:9:" in out
    assert "^" in out
    assert out.splitlines()[-1].endswith("0 warnings: the bridge would not start")


def test_validation_gives_json_to_programs(call: Call, file: Path) -> None:
    file.write_text(GOOD.replace("bridge.id", "bridge.ide"))
    code, out, _ = call("validate", "--json", "-c", str(file))
    faults = [json.loads(line) for line in out.splitlines()]
    assert code == 2
    assert {fault["key"] for fault in faults} == {"bridge.ide", ""}
    assert {fault["level"] for fault in faults} == {"error"}


def test_a_configuration_without_faults_is_summed_up(call: Call, file: Path) -> None:
    assert call("validate", "-c", str(file)) == (0, f"{file}: 1 route, 1 source; 0 errors, 0 warnings\n", "")


@pytest.mark.parametrize(
    "command", [("topology",), ("explain",), ("send", "queue:a"), ("receive", "kafka:a"), ("dlt", "list"), ("run",)]
)
def test_every_command_refuses_a_configuration_that_is_not_there(
    call: Call, tmp_path: Path, command: tuple[str]
) -> None:
    missing = tmp_path / "missing.properties"
    code, out, err = call(*command, "-c", str(missing))
    assert (code, out) == (2, "")
    assert str(missing) in err
    assert "Traceback" not in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
@pytest.mark.parametrize("command", [("validate", "-c"), ("validate",), ("run", "-c"), ("diff", __file__)])
def test_a_file_that_may_not_be_read_is_a_fault_of_the_file(call: Call, file: Path, command: tuple[str, ...]) -> None:
    file.chmod(0)
    code, out, err = call(*command, str(file))
    assert code == 2
    told = f"{file}: error: the file cannot be read: permission denied (give the user who runs jms-bridge the right to"
    assert told in out + err


def test_no_message_points_to_a_page_that_an_installed_bridge_has_not() -> None:
    root = Path(app.__file__).parents[2]
    modules = [file for package in ("engine", "routes") for file in (root / package).rglob("*.py")]
    # What makes a page may name it.
    texts = [text for file in modules if file.name != "reference.py" for text in messages(ast.parse(file.read_text()))]
    assert len(texts) > 5000
    assert not [text for text in texts if re.search(r"\bdocs/|in the project", text)]


def messages(tree: ast.Module) -> Iterator[str]:
    """The texts in a module, without docstrings."""
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


def test_no_file_is_looked_at_before_who_reads_it_does() -> None:
    options = [parameter for command in commands(typer.main.get_command(app.app)) for parameter in command.params]
    paths = [option for option in options if hasattr(option.type, "readable")]
    assert {"config", "files", "file", "old", "new", "junit"} <= {option.name for option in paths}
    assert not [option.name for option in paths if option.type.readable]


def commands(group: Any) -> Iterator[Any]:
    for child in group.commands.values():
        yield from commands(child) if hasattr(child, "commands") else [child]


def test_secrets_are_masked_where_configuration_is_shown(call: Call, file: Path) -> None:
    for arguments in (("config", "show"), ("config", "show", "--json")):
        code, out, _ = call(*arguments, "-c", str(file))
        assert code == 0
        assert "source.s.password" in out
        assert "hunter2" not in out


def test_the_topology_is_shown_as_text_and_as_a_picture(call: Call, file: Path) -> None:
    code, out, _ = call("topology", "-c", str(file))
    assert code == 0
    assert out.startswith("Topologies:\n   Sub-topology: 0\n    Source: journal (topics: [jms-bridge.journal])\n")
    code, out, _ = call("topology", "--mermaid", "-c", str(file))
    assert code == 0
    assert out.startswith("flowchart LR\n")


def test_the_topology_is_printed_for_programs(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "jms-bridge.properties"
    path.write_text(WITH_SINKS)
    code, out, _ = call("topology", "--json", "-c", str(path))
    nodes = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert nodes[0]["topics"] == ["jms-bridge.journal"]
    known = {node["name"] for node in nodes}
    assert all({*node.get("after", ()), *node.get("before", ())} <= known for node in nodes)
    connectors = {node["name"]: node["routes"] for node in nodes if node["kind"] == "sink connector"}
    assert connectors == {
        "nats": {"orders": "nats:orders.${msg.header.region}", "replies to nats": "nats: requesters"},
        "jms": {"rest": "jms:queue/rest", "replies to jms": "jms: requesters"},
    }
    assert call("topology", "--json", "--mermaid", "-c", str(path))[0] == 64


def test_the_topology_shows_where_sinks_send_what_they_read(call: Call, file: Path) -> None:
    file.write_text(WITH_SINKS)
    text = call("topology", "-c", str(file))[1]
    assert text.partition("Sinks:\n")[2].splitlines() == [
        "   Sink: nats (topic: jms-bridge.sink.nats, broker: nats://127.0.0.1:4222)",
        "    replies to nats --> nats: requesters",
        "    orders --> nats:orders.${msg.header.region}",
        "   Sink: jms (topic: jms-bridge.sink.jms, broker: stomp://127.0.0.1:1)",
        "    replies to jms --> jms: requesters",
        "    rest --> jms:queue/rest",
    ]
    picture = call("topology", "--mermaid", "-c", str(file))[1].splitlines()
    assert '  t1[("jms-bridge.sink.nats")]' in picture
    assert picture[-3].startswith('  t1 -- "orders" --> s')
    assert picture[-3].endswith('[/"nats:orders.${msg.header.region}"/]')


def test_routes_that_the_bridge_adds_are_left_out_where_they_would_confuse(call: Call, file: Path) -> None:
    file.write_text(WITH_SINKS)
    assert call("validate", "-c", str(file))[1] == f"{file}: 2 routes, 1 source, 2 sinks; 0 errors, 0 warnings\n"
    text = call("explain", "--address", "queue:rest", "-c", str(file))[1]
    assert "replies to" not in text
    assert "result   published to jms:queue/rest (by way of kafka:jms-bridge.sink.jms) by route 'rest'" in text
    reply = call("explain", "-p", "JMS_JmsBridge_ReplySink=jms", "-p", "JMS_JmsBridge_ReplyTo=queue:a", "-c", str(file))
    assert "route    replies to jms: takes it\n" in reply[1]


def test_the_body_of_an_explained_message_is_shown_as_its_route_masks_it(call: Call, file: Path) -> None:
    file.write_text(WITH_SINKS + "routes.rest.out.mask=msg.body.card\n")
    explain = ("explain", "--address", "queue:rest", "--body", '{\n "card": 4711\n}', "-c", str(file))
    out = call(*explain)[1]
    assert out.endswith('\nbody\n  {\n   "card": "***"\n  }\n')
    assert "4711" not in out
    assert json.loads(call(*explain, "--json")[1])["body"] == '{\n "card": "***"\n}'
    assert "body\n" not in call("explain", "--address", "queue:orders", "--body", "x", "-c", str(file))[1]


def test_an_explained_message_shows_that_its_body_leaves_as_a_file(call: Call, file: Path) -> None:
    file.write_text(WITH_SINKS + "claim-check.folder=bodies\nroutes.rest.out.claim-check-above=1KiB\n")
    explain = ("explain", "--address", "queue:rest", "--body", "x" * 2000, "-c", str(file))
    out = call(*explain)[1]
    assert (
        "by route 'rest', key ID:example, its body of 2,000 bytes as a file in claim-check.folder, with headers" in out
    )
    digest = hashlib.sha256(b"x" * 2000).hexdigest()
    assert re.search(rf"  jmsbridge\.claim +\d{{4}}-\d\d-\d\d/{digest} 2000\n  jmsbridge\.destination ", out)
    assert json.loads(call(*explain, "--json")[1])["claim"].endswith(f"/{digest} 2000")
    assert not (file.parent / "bodies").exists()


def test_a_converted_body_that_is_not_text_is_shown_in_hexadecimal(call: Call, file: Path) -> None:
    file.write_text(WITH_SINKS + "routes.rest.out.convert=to IBM1047\n")
    explain = ("explain", "--address", "queue:rest", "--body", "Ä[", "-c", str(file))
    assert call(*explain)[1].endswith("\nbody\n  hex:63ad\n")
    assert json.loads(call(*explain, "--json")[1])["body_base64"] == "Y60="


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("send", "orders", "x"), "'orders' is not a destination: expected kafka:TOPIC, queue:NAME, topic:NAME, nats:"),
        (("receive", "jsm:orders"), "NAME:ADDRESS (NAME is a source or sink: s)"),
        (("send", "nats:orders.*", "x"), "expected a subject without wildcards"),
        (("send", "queue:a", "x", "--stream"), "--stream is for NATS; leave it out for queue:a"),
        (("send", "kafka:a", "x", "--format", "json"), "--format is for NATS; leave it out for kafka:a"),
        (("send", "nats:a", "x", "--format", "auto"), "--format auto: expected headers, json, typed, typed-1.0 or raw"),
        (
            ("send", "nats:a", "x", "--format", "raw", "-p", "b=c"),
            "a message of format raw is its body alone: leave out",
        ),
        (("send", "queue:a", "x", "-H", "JMSMessageID=ID:1"), "JMSMessageID is set by the broker or by the receiver"),
        (
            ("send", "queue:a", "x", "--reply-to", "replies"),
            "'replies' is not a destination: expected queue/NAME or topic/",
        ),
        (("send", "nats:a", "x", "--stream", "--reply-to", "b"), "--stream and --reply-to do not go together"),
        (("receive", "queue:a", "--stream", "S"), "--stream is for NATS; queue:a is read without"),
        (("receive", "kafka:a", "--stream", "S"), "--stream is for NATS; kafka:a is read without"),
        (("request", "kafka:a", "x"), "kafka:a: Kafka knows no replies; ask at a queue, topic or subject"),
        (("request", "queue:a", "-H", "JMSReplyTo=queue:b"), "request uses a reply address of its own"),
        (
            ("topology", "state", "a:b", "n", "--since", str(2**63)),
            f"'{2**63}' is not a time: expected 2026-01-01T12:00:00Z",
        ),
        (("request", "queue:a", "--timeout", "soon"), "'soon' is not a time: expected seconds, as 5 or 5s, or 500ms"),
    ],
)
def test_what_does_not_go_together_is_one_line(call: Call, file: Path, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = call(*arguments, "-c", str(file))
    assert (code, out, err.count("\n")) == (64, "", 1)
    assert said in err


def test_a_broker_that_nobody_configured_is_said_to_be_missing(call: Call, file: Path) -> None:
    file.write_text(GOOD + "embedded.nats.port=1\n")
    for arguments in (("send", "nats:a", "x"), ("receive", "nats:a"), ("request", "nats:a")):
        code, out, err = call(*arguments, "-c", str(file))
        assert (code, out) == (6, "")
        assert err == (
            "jms-bridge: nats://127.0.0.1:1 does not answer (Connection refused); no source or sink of type nats is "
            "configured: name a broker with --url, or start a bridge that has one\n"
        )


def test_an_error_of_the_bridge_ends_with_its_own_exit_code(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> None:
        raise HardFailureError("not authorised")

    monkeypatch.setattr("engine.cli.topology.load", fail)
    assert call("topology") == (4, "", "jms-bridge: not authorised\n")


def test_a_certificate_that_is_none_is_a_fault_of_the_settings(call: Call, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nonsense")
    file = tmp_path / "b.properties"
    lines = ["kafka.security.protocol=SSL", "kafka.ssl.ca.location=ca.pem", "routing.dead-letter-topic=d"]
    file.write_text("\n".join(["bridge.id=b", "routes.a.in.include=TRUE", "routes.a.out.topic=x", *lines]))
    code, out, err = call("dlt", "list", "-c", str(file))
    assert (code, out) == (2, "")
    assert err.startswith("jms-bridge: a Kafka setting cannot be used: ")
    assert "ssl.ca.location" in err


def test_what_nobody_foresaw_is_one_line_too_and_a_trace_on_demand(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("engine.cli.topology.load", fail)
    assert call("topology") == (
        1,
        "",
        "jms-bridge: internal error: ZeroDivisionError: oh (JMS_BRIDGE_DEBUG=1 shows where)\n",
    )
    monkeypatch.setenv("JMS_BRIDGE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["topology"])


def test_an_interrupted_command_says_nothing(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("engine.cli.topology.load", interrupt)
    assert call("topology") == (130, "", "")


def test_the_program_is_the_package() -> None:
    assert app.main is main


def test_the_reference_has_the_commands_that_are_groups_too_and_a_value_for_each_option() -> None:
    page = reference()
    assert "\n## jms-bridge topology\n" in page
    assert "| `--mermaid` | Print a Mermaid flowchart" in page
    assert "\n## jms-bridge dlt\n" not in page
    assert [line for line in page.splitlines() if "``" in line.replace("```", "")] == []
    assert "| `--mode` `auto\\|realtime\\|batch` |" in page
