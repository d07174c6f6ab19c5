"""Imports of short commands: none loads a library that it does not use, which would take longer than the command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

_RUN = """
import json, sys
from engine.cli import main
try:
    main(sys.argv[1:])
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
_CONFIGURATION = """
bridge.id=imports
http.address=127.0.0.1:1
source.orders.type=stomp
source.orders.destinations=queue:orders
routes.orders.in.include=msg.address==orders AND amount > 1000
routes.orders.out.topic=orders
"""
_SERVERS = {"pyspark", "numpy", "starlette", "uvicorn", "jinja2"}
_LOGS = {"structlog", "asyncio"}


@pytest.mark.parametrize(
    ("arguments", "code", "unused"),
    [
        (("--version",), 0, {*_SERVERS, *_LOGS, "confluent_kafka", "lark", "pydantic", "rich", "routes.model"}),
        (("--help",), 0, {*_SERVERS, *_LOGS, "confluent_kafka", "lark", "pydantic"}),
        (("validate",), 0, {*_SERVERS, *_LOGS, "confluent_kafka", "rich"}),
        (("status",), 6, {*_SERVERS, *_LOGS, "confluent_kafka", "rich"}),
        (("send", "queue:orders", "--url", "stomp://127.0.0.1:1"), 6, {*_SERVERS, "confluent_kafka", "rich"}),
        (("receive", "queue:orders", "--url", "stomp://127.0.0.1:1"), 6, {*_SERVERS, "confluent_kafka", "rich"}),
    ],
)
def test_a_command_imports_what_it_uses(
    tmp_path: Path, arguments: tuple[str, ...], code: int, unused: set[str]
) -> None:
    (tmp_path / "jms-bridge.properties").write_text(_CONFIGURATION)

    done = subprocess.run(
        [sys.executable, "-c", _RUN, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    *_, modules = done.stderr.splitlines()
    assert done.returncode == code, done.stderr
    assert not unused & set(json.loads(modules))


def test_a_command_imports_the_modules_of_no_other_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _RUN, "init", "new.properties"], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    *_, modules = done.stderr.splitlines()
    loaded = {name for name in json.loads(modules) if name.startswith("engine.cli.")}
    assert loaded == {"engine.cli.app", "engine.cli.config", "engine.cli.options", "engine.cli.output"}


@pytest.mark.parametrize("module", ["last_progress", "position_store", "lag"])
def test_the_checks_before_a_start_do_without_pyspark(module: str) -> None:
    """Spark's JVM starts before PySpark is imported, and the supervisor never imports it."""
    program = f"import sys, engine.router.{module}; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
