"""Conversions of routes: what is wrong with their steps is told at its place."""

from __future__ import annotations

import pytest

from routes.config import lint_text

START = """\
bridge.id=b
source.s.type=stomp
source.s.destinations=queue:q
routes.r.in.include=msg.address==q
routes.r.out.topic=t
routes.r.out.convert="""
AS_IN = "as in gunzip, from IBM1047"
ORDER = "steps have the order gunzip, from, xml-to-json, json-to-xml, to, gzip"
KINDS = "gunzip, from, xml-to-json, json-to-xml, to or gzip"


@pytest.mark.parametrize(
    ("steps", "fault"),
    [
        ("", f"6:22: error: a step is missing ({AS_IN})"),
        ("gunzip,", f"6:29: error: a step is missing ({AS_IN})"),
        ("gunzip,, gzip", f"6:29: error: a step is missing ({AS_IN})"),
        ("gunzip, , gzip", f"6:30: error: a step is missing ({AS_IN})"),
        ("unzip", f"6:22: error: 'unzip' is not {KINDS} (did you mean gunzip?)"),
        ("gunzip, brotli", f"6:30: error: 'brotli' is not {KINDS} ({AS_IN})"),
        ("gunzip, GZIP", f"6:30: error: 'GZIP' is not {KINDS} (did you mean gzip?)"),
        ("gunzip from IBM037", "6:29: error: 'gunzip' takes nothing after it (separate steps by commas)"),
        ("from", "6:22: error: 'from' needs a character set (as in from IBM1047 or from ISO-8859-1)"),
        (
            "gunzip, from cp1047",
            "6:35: error: 'cp1047' is not a character set that is known here (did you mean IBM1047?)",
        ),
        (
            "to   latin1",
            "6:27: error: 'latin1' is not a character set that is known here (did you mean ISO-8859-1?)",
        ),
        ("to utf8", "6:25: error: 'utf8' is not a character set that is known here (did you mean UTF-8?)"),
        (
            "to EBCDIC",
            "6:25: error: 'EBCDIC' is not a character set that is known here "
            "(such as IBM1047, ISO-8859-1, windows-1252 or UTF-16)",
        ),
        ("gzip, gzip", "6:28: error: 'gzip' comes after another 'gzip' (each kind of step once)"),
        ("from IBM037, from IBM500", "6:35: error: 'from IBM500' comes after another 'from' (each kind of step once)"),
        ("to IBM037, from IBM500", f"6:33: error: 'from IBM500' comes after 'to IBM037' ({ORDER})"),
        ("gzip, gunzip", f"6:28: error: 'gunzip' comes after 'gzip' ({ORDER})"),
        (
            "gunzip\nroutes.r.out.mask=msg.body.a",
            "6:22: error: 'gunzip' takes no JSON, and out.mask, which comes first, nothing else (remove one)",
        ),
    ],
)
def test_faults_of_steps_are_told_at_their_place(steps: str, fault: str) -> None:
    assert [str(each).splitlines()[0] for each in lint_text(f"{START}{steps}\n").faults] == [fault]


def test_steps_are_read() -> None:
    config = lint_text(
        f"{START}gunzip, from  ibm1047 ,to ISO-8859-1,gzip\nroutes.q.in.include=TRUE\nroutes.q.out.topic=q\n"
    ).config
    assert config is not None
    assert [str(route.steps) for route in config.routes] == ["gunzip, from IBM1047, to ISO-8859-1, gzip", "None"]
