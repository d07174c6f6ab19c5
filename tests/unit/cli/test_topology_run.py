"""Exit codes and log of `jms-bridge topology run`: modules with faults, told before Spark starts, and a lost JVM."""

import logging
from pathlib import Path
from unittest.mock import Mock

import pytest
import structlog
from py4j.java_gateway import GatewayClient
from py4j.protocol import ERROR_ON_RECEIVE, Py4JNetworkError

from engine.errors import ServerEndedError
from engine.topologies.library.served_modules import serve
from tests.commands import exit_code

CONFIG = "bridge.id=b\nkafka.bootstrap.servers=127.0.0.1:1\nroutes.a.in.include=TRUE\nroutes.a.out.topic=t\n"


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        (None, 64, "there is no module faulty; it is looked for in"),
        ("", 64, "faulty has no function build"),
        ("import no_such_module\n", 2, "faulty.py:1:1: ModuleNotFoundError: No module named 'no_such_module'"),
        ("x = 1\ndef build(:\n", 2, "faulty.py:2:11: SyntaxError: invalid syntax"),
        ("import sys\nsys.exit(0)\n", 2, "faulty.py:2:1: SystemExit: 0"),
    ],
)
def test_a_fault_is_told_in_one_line_with_its_place(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str | None,
    code: int,
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "faulty", raising=False)
    Path("b.properties").write_text(CONFIG)
    if text is not None:
        Path("faulty.py").write_text(text)
    assert exit_code("topology", "run", "faulty:build", "-c", "b.properties") == code
    serve([])
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


def test_its_log_hides_secrets_and_has_no_stacks_of_py4j(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr("engine.topologies.runtime.run.run_topology", ended_by_the_jvm)
    Path("b.properties").write_text(CONFIG + "kafka.common.sasl.password=hunter2\n")
    assert exit_code("topology", "run", "any:build", "-c", "b.properties") == 1
    said = capsys.readouterr()
    assert "refused hunter2" not in said.out + said.err
    assert "refused ***" in said.err
    assert said.err.splitlines()[-1] == "jms-bridge: Spark's Java process has ended; start it again"
    assert "Traceback" not in said.err


def ended_by_the_jvm(*_: object) -> None:
    """Fails as a run does whose JVM ends: py4j, in another thread, tells the root logger the error that it raises."""
    structlog.get_logger("engine").warning("not stopped in order", why="refused hunter2")
    client = GatewayClient()
    connection = Mock()
    connection.send_command.side_effect = Py4JNetworkError("reset by peer", when=ERROR_ON_RECEIVE)
    client._give_back_connection(connection)
    client.send_command("c\n", retry=False)
    message = "Spark's Java process has ended"
    raise ServerEndedError(message)
