"""What is imported, in an interpreter of its own."""

from __future__ import annotations

import subprocess
import sys

PLAIN = """\
bridge.id=b1
kafka.bootstrap.servers=127.0.0.1:9
routes.a.in.include=TRUE
routes.a.out.topic=t
"""


def test_a_configuration_is_read_without_any_client_library() -> None:
    program = (
        "import sys; from routes.config import lint_text; from routes.systems import all_systems\n"
        f"lint_text({PLAIN + 'source.s.type=nats'!r}); all_systems()\n"
        "print(sorted({'pyspark', 'confluent_kafka', 'stomp', 'nats'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
