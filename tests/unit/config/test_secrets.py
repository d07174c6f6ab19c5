"""References are resolved, and no secret is ever shown: not in a fault, not in a row, not in a repr."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.spark.section import SparkConfig
from routes.config import diff, lint, lint_text, load, loads, show
from routes.keys.secrets import MASK, Secret, is_secret_key, mask
from routes.predicate import trace
from routes.properties import Property

SECRET = "hunter2"
START = "bridge.id=b\nroutes.r.in.include=TRUE\nroutes.r.out.topic=t\nsource.s.type=stomp\n"
WITH_SOURCE = START + "source.s.destinations=queue:q\nsource.s.username=u\n"


def test_a_reference_to_the_environment_is_replaced() -> None:
    config = loads(WITH_SOURCE + "source.s.password=<${env:PW}>", env={"PW": SECRET})
    assert config.sources[0].password == f"<{SECRET}>"


def test_a_reference_to_a_file_is_replaced_by_its_content_without_the_last_line_end(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("one\ntwo\n\n")
    config = loads(WITH_SOURCE + "kafka.ssl.keystore.key=${file:key}", tmp_path)
    assert config.kafka.common["ssl.keystore.key"] == "one\ntwo\n"


def test_a_doubled_dollar_is_a_plain_one() -> None:
    assert loads(WITH_SOURCE + "source.s.password=$${env:PW}", env={}).sources[0].password == "${env:PW}"


def test_references_work_in_any_value() -> None:
    text = START + "source.s.destinations=${env:D}\njournal.partitions=${env:N}\nrouter.mode=${env:M}"
    config = loads(text, env={"D": "queue:a, topic:b", "N": "7", "M": "batch"})
    assert (config.sources[0].destinations, config.journal.partitions) == (("queue:a", "topic:b"), 7)


@pytest.mark.parametrize(
    ("value", "column", "message"),
    [
        ("ab${env:NONE}", 21, "the environment has no variable 'NONE'"),
        ("${file:none}", 19, "the file 'none' cannot be read: no such file or directory"),
        ("${file:binary}", 19, "the file 'binary' is not UTF-8 text"),
        ("${file:/dev/zero}", 19, "the file '/dev/zero' has more than 1 MiB"),
        ("x${sys:PW}", 20, "'${' starts a reference of no known kind"),
    ],
)
def test_a_reference_that_leads_nowhere_is_a_fault_at_its_place(
    tmp_path: Path, value: str, column: int, message: str
) -> None:
    (tmp_path / "binary").write_bytes(b"\xff")
    (fault,) = lint_text(WITH_SOURCE + f"source.s.username={value}", tmp_path, env={}).errors
    assert fault.message == message
    assert (fault.line, fault.column) == (7, column if "x$" in value else 19)


@pytest.mark.parametrize(
    "line",
    [
        f"source.s.pasword={SECRET}",
        f"source.s.password={SECRET} ",
        f"source.s.password={SECRET}\\u00",
        f"source.s.password={SECRET}\\q",
        f"source.s.password=a\\\n   {SECRET}\\u00",
        f"source.s.url=stomp://me:{SECRET}@h:1",
        f"source.s.url=http://me:{SECRET}@h:1",
        f"kafka.bootstrap.servers=me:{SECRET}@h",
        f"kafka.bootstrap.servers=me:{SECRET}@h:1 ",
        f"kafka.sasl.jaas.config=org.x.Module required password={SECRET}",
        f"kafka.producer.sasl.pasword={SECRET}",
        f"kafka.ssl.keystore.key={SECRET} ",
        f"spark.my.credential={SECRET} ",
        "router.mode=${env:PW}",
        "routes.r.in.exclude=a = = ${env:PW}",
        "routes.r.in.exclude=${env:PW} b",
        "routes.r.out.topic=a b${env:PW}",
        "routes.r.conv.key=${env:PW} x",
        "source.s.destinations=${env:PW}",
        "http.address=${env:PW}",
        "routing.key-pattern=(${env:PW}",
        "kafka.security.protocol=${env:PW}",
        "kafka.ssl.ca.location=${env:PW}",
        "source.s.tls.ca=${env:PW}",
        "routes.q.name=r${env:PW}",
    ],
)
def test_no_fault_quotes_a_secret(line: str) -> None:
    faults = lint_text(f"{START}{line}\n", env={"PW": SECRET}).faults
    assert faults
    assert not [str(fault) for fault in faults if SECRET in f"{fault} {fault!r}"]


def test_no_repr_of_a_configuration_shows_a_secret(tmp_path: Path) -> None:
    text = WITH_SOURCE + (
        "source.s.password=hunter2\nsource.s.client-id=${env:PW}\nkafka.sasl.password=hunter2\n"
        "kafka.client.rack=${env:PW}\nkafka.producer.ssl.key.password=hunter2\nspark.my.token=hunter2\n"
        'kafka.sasl.jaas.config=org.x.PlainLoginModule required username="u" password="hunter2";\n'
    )
    config = loads(text, tmp_path, env={"PW": SECRET})
    assert SECRET not in repr(config)
    assert config.kafka.common["client.rack"] == SECRET
    assert config.section(SparkConfig)["spark.my.token"] == SECRET


def test_rows_show_references_and_mask_secrets(tmp_path: Path) -> None:
    file = tmp_path / "b.properties"
    file.write_text(
        WITH_SOURCE + "source.s.password=hunter2\nsource.s.client-id=a${env:X}\nkafka.sasl.password=${env:PW}\n"
        "source.s.url=stomp://me:hunter2@h:1\nkafka.ssl.key.password=x${env:PW}\nsource.s.pasword=hunter2\n"
    )
    rows = {row.key: (row.value, row.origin) for row in show(file)}
    assert rows["source.s.password"] == (MASK, "line 7")
    assert rows["source.s.client-id"] == ("a${env:X}", "line 8")
    assert rows["kafka.sasl.password"] == ("${env:PW}", "line 9")
    assert rows["source.s.url"] == (MASK, "line 10")
    assert rows["kafka.ssl.key.password"] == (MASK, "line 11")
    assert SECRET not in str(rows)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (f"kafka.bootstrap.servers=u:{SECRET}@h:1", MASK),
        (f"kafka.bootstrap.servers=a:1, u:{SECRET}@${{env:HOST}}:1", MASK),
        (f"source.s.url=stomp://u:x/{SECRET}@h:1", MASK),
        (f"tracing.endpoint=http://u:{SECRET}@h:1", MASK),
        (f"spark.my.url=http://u:{SECRET}@h:1", f"http://{MASK}@h:1"),
        ("kafka.bootstrap.servers=a:1, b:2", "a:1, b:2"),
        ("routes.r.in.exclude=a == u:x@h:1", "a == u:x@h:1"),
    ],
)
def test_a_login_in_an_address_is_masked_wherever_configuration_is_shown(tmp_path: Path, line: str, shown: str) -> None:
    key = line.partition("=")[0]
    files = [tmp_path / name for name in ("old", "new")]
    for file, text in zip(files, (WITH_SOURCE, f"{WITH_SOURCE}{line}\n"), strict=True):
        file.write_text(text)
    assert {row.key: row.value for row in show(files[1])}[key] == shown
    assert [change.new for change in diff(*files, env={"HOST": "h"}) if change.key == key] == [shown]


@pytest.mark.parametrize(
    ("written", "read", "parts"),
    [
        ("region = '${env:PW}'", SECRET, ["region = '${env:PW}'", "region"]),
        (
            "a==1 && b==${env:PW} || c IN ('${env:PW}', 'x')",
            SECRET,
            ["a==1 && b==${env:PW}", "c IN ('${env:PW}', 'x')"],
        ),
        ("${env:PW}", f"a = 1 AND b = '{SECRET}'", ["${env:PW}", "${env:PW}"]),
        ("a == x${env:PW}y AND b IS NULL", SECRET, ["a == x${env:PW}y", "b IS NULL"]),
        ("a = '$${x}' AND b IS NULL", SECRET, ["a = '$${x}'", "b IS NULL"]),
    ],
)
def test_a_predicate_shows_references_as_they_are_written(written: str, read: str, parts: list[str]) -> None:
    text = WITH_SOURCE.replace("include=TRUE", f"include={written}")
    include = loads(text, env={"PW": read}).routes[0].include
    traced = trace(include, {"region": Property(read)}.get)
    assert traced.text == str(include) == written
    assert [part.text for part in (traced, *traced.parts)][-2:] == parts
    assert SECRET not in repr(include)
    if "region" in written:
        assert traced.value is True


def test_rows_have_the_defaults_of_what_is_not_set(tmp_path: Path) -> None:
    file = tmp_path / "b.properties"
    file.write_text(WITH_SOURCE)
    rows = {row.key: (row.value, row.origin) for row in show(file)}
    assert rows["journal.topic"] == ("jms-bridge.journal", "default")
    assert rows["source.s.workers"] == ("1", "default")
    assert rows["routes.r.conv.key"] == ("(the message id)", "default")
    assert "source.s.password" not in rows
    assert load(file).journal.topic == "jms-bridge.journal"


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("source.a.password", True),
        ("kafka.sasl.jaas.config", True),
        ("kafka.ssl.keystore.key", True),
        ("spark.hadoop.fs.s3a.access.key", True),
        ("spark.hadoop.fs.azure.account.key.one.dfs.core.windows.net", True),
        ("kafka.sasl.oauthbearer.token.endpoint.url", False),
        ("routes.r.conv.key", False),
        ("source.a.tls.key", False),
        ("routing.key-pattern", False),
    ],
)
def test_a_key_that_sounds_like_a_secret_is_one(key: str, secret: bool) -> None:
    assert is_secret_key(key) is secret


def test_a_secret_prints_as_itself_and_hides_in_a_repr() -> None:
    assert (f"{Secret(SECRET)}", repr(Secret(SECRET))) == (SECRET, f"'{MASK}'")


def test_the_variables_that_secrets_come_from_are_known() -> None:
    text = WITH_SOURCE + "source.s.password=a${env:PW}b${env:MORE}\nsource.s.client-id=${env:HOST}\n"
    config = loads(
        f"{text}kafka.sasl.password=${{env:KAFKA}}\nspark.my.token=$${{env:NO}}\n",
        env=dict.fromkeys(("PW", "MORE", "HOST", "KAFKA"), "x"),
    )
    assert config.secret_variables == {"PW", "MORE", "KAFKA"}


@pytest.mark.parametrize(
    "key",
    ["source.s.pasword", "kafka.sasl.pasword", "spark.ssl.keyPasword", "http.tokn", "a.secert", "a.credentails"],
)
def test_a_mistyped_name_of_a_secret_tells_of_a_secret(key: str) -> None:
    assert is_secret_key(key)


@pytest.mark.parametrize("key", ["ssl.secure.random.implementation", "source.s.port", "http.tls.certificate", "broken"])
def test_other_names_do_not(key: str) -> None:
    assert not is_secret_key(key)


def test_nothing_shows_the_value_of_a_mistyped_key_or_of_a_secret_java_option(tmp_path: Path) -> None:
    plain, secret = tmp_path / "a.properties", tmp_path / "b.properties"
    plain.write_text("bridge.id=b\n")
    options = '-Djavax.net.ssl.trustStorePassword=geheim-1 -Dx.secret="geheim-2 geheim-2" -Dx.name=shown -Xmx1g'
    secret.write_text(
        f"bridge.id=b\nspark.driver.extraJavaOptions={options}\nkafka.sasl.pasword=geheim-3\n"
        "spark.ssl.keyPasword=geheim-4\nsource.s.pasword=geheim-5\nhttp.tokn=geheim-6\n"
    )
    told = [*map(str, show(secret)), *map(str, diff(plain, secret)), *map(str, lint(secret).faults)]
    assert not [line for line in told if "geheim" in line]
    assert any("-Dx.name=shown -Xmx1g" in line for line in told)


def test_secrets_are_masked_by_their_length() -> None:
    assert mask("a banana, abcd abcde-f xyabcd", ["a"]) == "a banana, abcd abcde-f xyabcd"
    assert mask("a banana, abcd abcde-f xyabcd", ["abcd"]) == "a banana, ****** abcde-f xyabcd"
    assert mask("x12345678y 12345678", ["12345678", "1234", ""]) == "x******y ******"
