"""Login of this process by Kerberos: its tickets, which librdkafka's clients use, and what a keytab holds.

MIT's library gets tickets itself, for the first principal of the keytab that it finds in the environment. So no `kinit`
runs, and no ticket is in a file.
"""

from __future__ import annotations

import os
import struct
from importlib import import_module
from typing import TYPE_CHECKING

from routes.keys.values import BadValueError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["keytab_principals", "lacks_kerberos", "use_keytab"]

_HEAD = b"\x05\x02"
"""Beginning of every keytab since Kerberos 5, release 1.0."""


def use_keytab(keytab: str) -> None:
    """Has the clients of this process log in by a keytab, with tickets in memory.

    Only C code sees the variables: `os.environ` stays as programs that the bridge starts should have it.
    """
    os.putenv("KRB5_CLIENT_KTNAME", f"FILE:{keytab}")
    os.putenv("KRB5CCNAME", "MEMORY:jms-bridge")


def lacks_kerberos() -> bool:
    """True if librdkafka is built without Kerberos, as it is in confluent-kafka's packages on PyPI."""
    # Loaded only here: most configurations are checked without librdkafka.
    library = import_module("confluent_kafka")
    try:
        # The second setting, which does not exist, is refused where the first is not, and so a client is never made.
        library.Producer({"builtin.features": "sasl_gssapi", "no.client": ""})
    except library.KafkaException as error:
        return "sasl_gssapi" in error.args[0].str()
    return False


def keytab_principals(keytab: Path) -> list[str]:
    """Returns the principals of a keytab, such as `bridge@EXAMPLE.COM`, each once and in the order of the file.

    Raises:
        BadValueError: the file cannot be read, or something else is in it.
    """
    try:
        return list(dict.fromkeys(_principals(keytab.read_bytes())))
    except OSError as error:
        raise BadValueError(f"'{keytab}' cannot be read: {error.strerror}", "let the bridge's user read it") from error
    except (struct.error, ValueError) as error:
        raise BadValueError(f"'{keytab}' is not a keytab", "make one with `ktadd` of kadmin") from error


def _principals(content: bytes) -> list[str]:
    if not content.startswith(_HEAD):
        raise ValueError
    found, at = [], len(_HEAD)
    while at < len(content):
        (size,) = struct.unpack_from("!i", content, at)
        at += 4
        # A negative size is that of a removed entry.
        if size > 0:
            found.append(_principal(content[at : at + size]))
        at += abs(size)
    return found


def _principal(entry: bytes) -> str:
    (count,) = struct.unpack_from("!H", entry)
    texts, at = [], 2
    for _ in range(count + 1):
        (length,) = struct.unpack_from("!H", entry, at)
        at += 2
        texts.append(entry[at : at + length].decode())
        at += length
    realm, *names = texts
    return f"{'/'.join(names)}@{realm}"
