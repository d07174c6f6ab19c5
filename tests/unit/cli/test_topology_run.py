"""Exit codes of `jms-bridge topology run` for modules with faults, which it tells before it starts Spark."""

from pathlib import Path

import pytest

from engine.cli import main
from engine.streams.served_modules import serve

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
    with pytest.raises(SystemExit) as ended:
        main(["topology", "run", "faulty:build", "-c", "b.properties"])
    serve([])
    said = capsys.readouterr().err
    assert ended.value.code == code
    assert told in said
    assert said.count("\n") == 1
