"""Logins by Kerberos: what a keytab holds, what lint finds, and the settings of both kinds of clients."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer

from engine.kafka.clients import QUIET
from engine.kafka.kerberos import keytab_principals, lacks_kerberos
from engine.kafka.security import SECRET_FILES
from engine.kafka.settings import java_settings, librdkafka
from routes.config import lint_text, loads
from routes.keys.values import BadValueError

SECURITY = Path(__file__).parents[3] / "docs" / "security.md"
BRIDGE_ALONE = """\
bridge.id=b
embedded=off
source.s.type=stomp
source.s.url=stomp://h:1
source.s.destinations=queue:q
routes.r.in.include=msg.address==q
routes.r.out.topic=t
"""
START = f"""\
{BRIDGE_ALONE}kafka.bootstrap.servers=h:1
kafka.security.protocol=SASL_SSL
kafka.sasl.mechanism=GSSAPI
"""
LOGIN = "kafka.sasl.kerberos.principal=bridge@EXAMPLE.COM\nkafka.sasl.kerberos.keytab=bridge.keytab\n"


def counted(text: str) -> bytes:
    return struct.pack("!H", len(text)) + text.encode()


def entry(*names: str, realm: str = "EXAMPLE.COM") -> bytes:
    """An entry of a keytab without its key, which nothing here reads."""
    body = struct.pack("!H", len(names)) + b"".join(map(counted, (realm, *names))) + b"\0" * 20
    return struct.pack("!i", len(body)) + body


def keytab(*entries: bytes) -> bytes:
    return b"\x05\x02" + b"".join(entries)


BRIDGE = keytab(entry("bridge"), entry("bridge"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a keytab, where librdkafka can do Kerberos."""
    monkeypatch.setattr("engine.kafka.login_checks.lacks_kerberos", lambda: False)
    (tmp_path / "bridge.keytab").write_bytes(BRIDGE)
    return tmp_path


def test_a_keytab_names_its_principals(tmp_path: Path) -> None:
    file = tmp_path / "k"
    removed = struct.pack("!i", -7) + b"x" * 7
    file.write_bytes(keytab(entry("kafka", "a.example"), removed, entry("bridge"), entry("bridge")))
    assert keytab_principals(file) == ["kafka/a.example@EXAMPLE.COM", "bridge@EXAMPLE.COM"]
    file.write_bytes(keytab())
    assert keytab_principals(file) == []


@pytest.mark.parametrize(
    "content",
    [b"", b"\x05\x01\0\0", b"hello", keytab(entry("bridge"))[:-30], keytab(b"\0\0\0\x04\0\x01\0\x09")],
    ids=["empty", "old version", "text", "cut off", "wrong length"],
)
def test_what_is_no_keytab_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "k"
    file.write_bytes(content)
    with pytest.raises(BadValueError, match="is not a keytab"):
        keytab_principals(file)


def test_both_kinds_of_clients_get_the_login(folder: Path) -> None:
    access = loads(START + LOGIN + "kafka.sasl.kerberos.service.name=kafka-eu\n", folder).kafka_access
    keytab_file = str(folder / "bridge.keytab")
    theirs = librdkafka(access, "producer")
    assert {name: theirs[name] for name in theirs if name.startswith("sasl.")} == {
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.principal": "bridge@EXAMPLE.COM",
        "sasl.kerberos.keytab": keytab_file,
        "sasl.kerberos.service.name": "kafka-eu",
        "sasl.kerberos.min.time.before.relogin": "0",
    }
    java = java_settings(access, "producer")
    assert {name: java[name] for name in java if name.startswith("sasl.")} == {
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka-eu",
        "sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required "
        f'useKeyTab="true" storeKey="true" doNotPrompt="true" keyTab="{keytab_file}" principal="bridge@EXAMPLE.COM";',
    }
    without = loads(START + LOGIN, folder).kafka_access
    assert java_settings(without, "admin")["sasl.kerberos.service.name"] == "kafka"


@pytest.mark.parametrize(
    ("lines", "message", "hint"),
    [
        (
            "",
            "'GSSAPI' needs a principal and a keytab",
            "set kafka.sasl.kerberos.principal and kafka.sasl.kerberos.keytab",
        ),
        (LOGIN.replace("@EXAMPLE.COM", ""), "'bridge' is not NAME@REALM", "bridge@EXAMPLE.COM"),
        (LOGIN.replace("@", "$(id)@"), "'bridge$(id)@EXAMPLE.COM' is not NAME@REALM", "bridge@EXAMPLE.COM"),
        (
            LOGIN.replace("=bridge@", "=other@"),
            "'bridge.keytab' is not a keytab of 'other@EXAMPLE.COM' alone",
            "it has keys of bridge@EXAMPLE.COM; extract one with `ktadd` of kadmin",
        ),
        (LOGIN.replace("=bridge.k", "=none.k"), "there is no file 'none.keytab'", "looked for "),
        (
            "kafka.sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;",
            "a login by Kerberos has keys of its own",
            "set sasl.kerberos.principal and sasl.kerberos.keytab in place of this",
        ),
        (
            LOGIN + "source.k.type=kafka\nsource.k.destinations=a\nsource.k.bootstrap.servers=other:1\n"
            "source.k.security.protocol=SASL_SSL\nsource.k.sasl.mechanism=GSSAPI\n"
            "source.k.sasl.kerberos.principal=b2@EXAMPLE.COM\nsource.k.sasl.kerberos.keytab=b2.keytab\n",
            "'b2@EXAMPLE.COM' is another principal than that of 'kafka.sasl.kerberos.principal'",
            "a bridge has one principal; use it for all clusters",
        ),
    ],
    ids=["no login", "no realm", "shell", "other key", "no file", "jaas", "two principals"],
)
def test_slips_with_a_login_by_kerberos(folder: Path, lines: str, message: str, hint: str) -> None:
    (folder / "b2.keytab").write_bytes(keytab(entry("b2")))
    found = {each.message: each.hint for each in lint_text(START + lines, folder).errors}
    assert found[message].startswith(hint)


def test_a_librdkafka_without_kerberos_is_refused_with_what_to_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lint_text(START + LOGIN, folder).faults == ()
    monkeypatch.setattr("engine.kafka.login_checks.lacks_kerberos", lambda: True)
    (fault,) = lint_text(START + LOGIN, folder).faults
    assert (fault.key, fault.message) == (
        "kafka.sasl.mechanism",
        "this installation's librdkafka is built without Kerberos",
    )
    assert "libsasl2" in fault.hint


RECIPES = [
    block
    for block in re.findall(r"^```\n(.*?)^```$", SECURITY.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    if block.startswith("kafka.bootstrap.servers=")
]


OTHER = {
    "kafka.": "",
    "source.k.": "kafka.bootstrap.servers=h:1\nsource.k.type=kafka\nsource.k.destinations=a\n",
    "sink.k.": "kafka.bootstrap.servers=h:1\nsink.k.type=kafka\nroutes.q.in.include=a = 1\nroutes.q.out.topic=k:a\n",
}
"""What a configuration has besides a login by keys that begin so."""


@pytest.mark.parametrize("keys", OTHER, ids=["own", "source", "sink"])
@pytest.mark.parametrize("recipe", RECIPES, ids=["confluent", "azure", "msk", "kerberos"])
def test_the_recipes_of_the_documentation_have_no_fault(folder: Path, recipe: str, keys: str) -> None:
    text = f"{BRIDGE_ALONE}{OTHER[keys]}{re.sub('^kafka[.]', keys, recipe, flags=re.MULTILINE)}"
    environment = dict.fromkeys(("CONFLUENT_KEY", "CONFLUENT_SECRET", "EVENT_HUBS_CONNECTION_STRING"), "long-secret")
    assert lint_text(text, folder, environment).faults == ()


def test_the_client_is_asked_whether_it_can_log_in_by_kerberos() -> None:
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI", "bootstrap.servers": "127.0.0.1:1"}
    try:
        Producer({**QUIET, **settings})
    except KafkaException:
        assert lacks_kerberos()
    else:
        assert not lacks_kerberos()


def test_a_keytab_is_known_as_a_secret_file(folder: Path) -> None:
    other = LOGIN.replace("kafka.", "source.k.")
    start = f"{OTHER['source.k.']}source.k.bootstrap.servers=k:1\nsource.k.security.protocol=SASL_SSL\n"
    lines = f"{start}source.k.sasl.mechanism=GSSAPI\n{other}"
    assert loads(BRIDGE_ALONE + lines, folder).sources[1].secret_files == (folder / "bridge.keytab",)
    assert "sasl.kerberos.keytab" in SECRET_FILES
