"""What lint says of what others on the network could read or reach, and of files that are not a configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from routes.config import lint_text
from routes.errors import Level
from tests.unit.config.start import START, faults


@pytest.mark.parametrize(
    ("lines", "warned"),
    [
        (("kafka.sasl.username=u", "kafka.sasl.password=p4ssword"), ["kafka.sasl.username", "kafka.sasl.password"]),
        (("kafka.security.protocol=SSL", "kafka.sasl.password=p4ssword"), ["kafka.sasl.password"]),
        (("kafka.ssl.ca.location=ca.pem",), ["kafka.ssl.ca.location"]),
        (("kafka.security.protocol=SSL", "kafka.ssl.ca.location=ca.pem"), []),
    ],
)
def test_a_login_or_certificates_that_nothing_uses_are_a_warning(
    tmp_path: Path, lines: tuple[str, ...], warned: list[str]
) -> None:
    (tmp_path / "ca.pem").touch()
    faults = lint_text(START + "\n".join(lines), tmp_path).faults
    assert [(found.key, found.level) for found in faults] == [(key, Level.WARNING) for key in warned]
    assert all("has no effect with kafka.security.protocol=" in found.message for found in faults)


def test_of_very_many_unknown_keys_only_the_first_are_looked_up() -> None:
    found = faults(*[f"kafak.k{number}=v" for number in range(3000)], "rotues.r.name=a")
    assert len(found) == 3001
    assert "did you mean" not in found[-1]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (("source.l.listen=amqp://127.0.0.1:1", "source.l.username=u"), ["no password lets in everybody who knows"]),
        (("source.l.listen=amqp://bridge.example:1",), ["there is no TLS", "nobody has to log in"]),
        (
            ("source.l.listen=amqp://bridge.example:1", "source.l.username=u", "source.l.password=p"),
            ["there is no TLS"],
        ),
        (("source.l.listen=amqp://[::1]:1",), []),
    ],
)
def test_a_listener_for_other_machines_wants_a_login_and_tls(lines: tuple[str, ...], says: list[str]) -> None:
    found = faults("source.l.type=amqp", "source.l.destinations=queue:a", *lines)
    assert len(found) == len(says)
    assert all(text in fault for text, fault in zip(says, found, strict=True))


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (("http.peers=edge-1:8480, [::1]:8480",), []),
        (("http.peers=edge-1",), ["6:12: error: 'edge-1' is not a host and a port"]),
        (("http.peers=edge-1:8480,edge-1:8480",), ["6:24: error: 'edge-1:8480' is listed twice"]),
        (("http.peers=edge-1:0",), ["6:19: error: '0' is not a port"]),
        (("http.peers=0.0.0.0:8480",), ["6:12: error: '0.0.0.0' stands for every address of a machine"]),
        (("http.peers=me:secret@edge-1:8480",), ["6:12: error: an address holds no user name and no password"]),
        (("http.peers=127.0.0.1:8480",), ["6:12: error: '127.0.0.1:8480' is the address of this bridge itself"]),
        (("http.peers=127.0.0.1:8480, edge-1:8480",), []),
        (("http.peers=edge-1:8480", "http.token=t0ken"), ["6:12: error: other machines are sent the login"]),
        (("http.peers=edge-1:8480", "http.token=t0ken", "http.insecure=true"), []),
        (("http.peers=127.0.0.1:8481", "http.token=t0ken"), []),
    ],
)
def test_peers_are_other_hosts_that_get_no_login_in_the_clear(lines: tuple[str, ...], says: list[str]) -> None:
    found = faults(*lines)
    assert len(found) == len(says), found
    assert all(fault.startswith(text) for text, fault in zip(says, found, strict=True)), found
    assert not any("secret" in fault for fault in found)


VIEWER = ("http.token=t0ken", "http.viewer.token=l00ker")
OPERATE = ("http.username=a", "http.password=b", "http.viewer.username=eve", "http.viewer.password=look")


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (VIEWER, []),
        (OPERATE, []),
        ((*VIEWER, *OPERATE), []),
        (("http.token=t0ken", *OPERATE[2:]), []),
        (("http.viewer.token=l00ker",), ["6:19: error: a viewer's login, and none of an operator"]),
        (OPERATE[2:], ["6:22: error: a viewer's login, and none of an operator"]),
        (("http.token=same", "http.viewer.token=same"), ["7:19: error: the token of the operator"]),
        ((*OPERATE[:2], "http.viewer.username=a", OPERATE[3]), ["8:22: error: the user name of the operator"]),
        (OPERATE[:3], ["8:22: error: a user name without a password"]),
        ((*OPERATE[:2], OPERATE[3]), ["8:22: error: a password without a user name"]),
        ((*VIEWER, "http.viewer.mask=iban, JMSType, msg.body, msg.body.a[*].b, xpath('/o/@x'), key"), []),
        ((*VIEWER, "http.viewer.mask=iban,, x"), ["8:23: error: '' is not the name of a header"]),
        ((*VIEWER, "http.viewer.mask=iban, iban"), ["8:24: error: 'iban' is listed twice"]),
        ((*VIEWER, "http.viewer.mask=a, msg.body."), ["8:"]),
        ((*VIEWER, "http.viewer.mask=a, xpath('//o')"), ["8:"]),
        ((*VIEWER, "http.viewer.mask=a b"), ["8:18: error: 'a b' is not the name of a header"]),
        ((*VIEWER, "http.viewer.mask=msg.address"), ["8:18: error: 'msg.address' is not the name of a header"]),
        ((*VIEWER, "http.viewer.mask=JMSDestination"), ["8:18: error: 'JMSDestination' is in metrics"]),
        (("http.token=t0ken", "http.viewer.mask=iban"), ["7:18: error: nobody is a viewer"]),
    ],
)
def test_a_viewer_has_a_login_of_his_own_and_masks_have_a_viewer(lines: tuple[str, ...], says: list[str]) -> None:
    found = faults(*lines)
    assert len(found) == len(says), found
    assert all(fault.startswith(text) for text, fault in zip(says, found, strict=True)), found
    assert not any("look" in fault or "l00ker" in fault for fault in found)


OIDC = (
    "http.oidc.issuer=https://login.example/realms/staff",
    "http.oidc.client.id=bridge",
    "http.url=https://bridge.example",
    "http.operator.groups=ops",
)
COMMANDS = (
    "http.oidc.command.client.id=commands",
    "http.oidc.command.client.secret=geheim",
    "http.oidc.audiences=api://bridge",
)
PROXY = (
    "http.proxy.header.user=X-Forwarded-User",
    "http.proxy.header.groups=X-Forwarded-Groups",
    "http.proxy.trusted=10.1.2.3, fd00:1::/64",
    "http.viewer.groups=staff, /it/support",
)


def with_line(lines: tuple[str, ...], line: str) -> tuple[str, ...]:
    """The lines, one of them replaced by another of its key, or else with that one behind them."""
    key = line.partition("=")[0] + "="
    kept = tuple(line if each.startswith(key) else each for each in lines)
    return kept if line in kept else (*kept, line)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (OIDC, []),
        (PROXY, []),
        ((*OIDC, *PROXY), []),
        ((*OIDC, "http.viewer.groups=staff", "http.viewer.mask=iban"), []),
        ((*OIDC, "http.viewer.token=l00ker"), []),
        (with_line(OIDC, "http.oidc.issuer=http://127.0.0.1:8080/realms/staff"), []),
        (with_line(OIDC, "http.oidc.issuer=http://login.example"), ["'http://login.example' is not https"]),
        (with_line(OIDC, "http.oidc.issuer=https://login.example/?a=b"), ["is not the URL of an issuer"]),
        (with_line(OIDC, "http.oidc.issuer=https://u:geheim@login.example"), ["a URL holds no user name"]),
        (with_line(OIDC, "http.oidc.issuer=ldap://login.example"), ["is not https://host"]),
        (with_line(OIDC, "http.url=https://bridge.example/page"), ["more than a scheme, a host and a port"]),
        (with_line(OIDC, "http.url=http://bridge.example"), ["others on the network can read the session"]),
        ((*with_line(OIDC, "http.url=http://bridge.example"), "http.insecure=true"), []),
        (with_line(OIDC, "http.url=http://127.0.0.1:8480/"), []),
        (OIDC[:1] + OIDC[2:], ["a login without a client id"]),
        (OIDC[:2] + OIDC[3:], ["a login without the address that browsers know"]),
        (OIDC[:3], ["nobody may log in: no group has a role"]),
        (OIDC[1:3], ["a client without a server"]),
        (OIDC[3:], ["nobody has groups"]),
        ((*OIDC, "http.oidc.scopes=profile"), ["without the scope openid has no ID token"]),
        ((*OIDC, "http.oidc.ca=none.pem"), ["there is no file 'none.pem'"]),
        ((*OIDC, "http.viewer.groups=a,,b"), ["a name is missing between commas"]),
        ((*OIDC, "http.viewer.groups=a, a"), ["'a' is listed twice"]),
        ((*OIDC, 'http.viewer.groups="CN=a,OU=b", c'), []),
        ((*OIDC, 'http.viewer.groups="CN=a,OU=b, c'), ["is not a name in double quotes"]),
        ((*OIDC, 'http.viewer.groups="a", a'), ["'a' is listed twice"]),
        ((*OIDC, *COMMANDS), []),
        ((*OIDC, *COMMANDS[:2]), ["no token of another client without http.oidc.audiences"]),
        ((*OIDC, *COMMANDS[1:]), ["a client without http.oidc.command.client.id"]),
        (COMMANDS[:2], ["a client without a server", "a client without a server"]),
        (PROXY[1:], ["without http.proxy.header.user", "nothing is trusted", "nobody has groups"]),
        (("http.proxy.header.address=X-Real-IP", PROXY[2], "http.token=t0ken"), []),
        (("http.proxy.header.address=X-Real-IP",), ["has no effect without http.proxy.trusted"]),
        (PROXY[:1] + PROXY[2:], ["has no effect without http.proxy.header.groups"]),
        (PROXY[:2] + PROXY[3:], ["has no effect without http.proxy.trusted"]),
        (PROXY[:3], ["nobody may log in: no group has a role"]),
        (with_line(PROXY, "http.proxy.trusted=0.0.0.0/0"), ["'0.0.0.0/0' has every address"]),
        (with_line(PROXY, "http.proxy.trusted=proxy.example"), ["is not an address or a network"]),
        (with_line(PROXY, "http.proxy.trusted=10.1.2.3/16"), ["is not an address or a network"]),
        (with_line(PROXY, "http.proxy.header.user=X_User"), ["is not the name of an HTTP header"]),
        (with_line(PROXY, "http.proxy.header.groups=x-forwarded-user"), ["the header of the user"]),
    ],
)
def test_users_of_others_need_groups_and_what_they_log_in_by_is_whole(lines: tuple[str, ...], says: list[str]) -> None:
    found = faults(*lines)
    assert len(found) == len(says), found
    assert all(text in fault for text, fault in zip(says, found, strict=True)), found
    assert not any("geheim" in fault for fault in found)
    # Other machines may reach pages that want such a login.
    if not says and lines[0] in (OIDC[0], PROXY[0]):
        assert faults(*with_line(lines, "http.insecure=true"), "http.address=0.0.0.0:8480") == []


def test_the_audit_of_looks_has_a_topic_of_its_own() -> None:
    for line in ("routing.dead-letter-topic", "journal.state-topic", "routes.r.out.topic", "sink.n.topic"):
        sink = ("sink.n.type=nats", "sink.n.url=nats://127.0.0.1:1") if "sink" in line else ()
        lines = START.replace("routes.r.out.topic=t\n", "" if "out.topic" in line else "routes.r.out.topic=t\n")
        found = lint_text(lines + "\n".join([*sink, f"{line}=jms-bridge.journal.looks"])).faults
        assert ["is the audit of looks" in str(each) for each in found] == [True], line
