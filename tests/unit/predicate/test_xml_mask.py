"""Masks of XML bodies hide the values under their paths, and change no other byte."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routes.predicate.bodies import Body, Bounds
from routes.predicate.xml_mask import XmlMask
from routes.predicate.xpath import parse_xpath

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp", "Cn", "Co"]), min_size=1)


def mask(*paths: str) -> XmlMask:
    return XmlMask(tuple(map(parse_xpath, paths)))


@pytest.mark.parametrize(
    ("paths", "before", "after"),
    [
        ("/a", "<a>1</a>", "<a>***</a>"),
        ("/a/b", "<?xml version='1.0'?>\n<a >\n <b>1</b > </a>\n", "<?xml version='1.0'?>\n<a >\n <b>***</b > </a>\n"),
        ("/a/b", "<a><b>1</b><c>2</c><b>3</b></a>", "<a><b>***</b><c>2</c><b>***</b></a>"),
        ("/a/b[2]", "<a><b>1</b><c>2</c><b>3</b></a>", "<a><b>1</b><c>2</c><b>***</b></a>"),
        ("/a/b[last()]", "<a><b>1</b><c>2</c><b>3</b></a>", "<a><b>1</b><c>2</c><b>***</b></a>"),
        ("/a/b/text()", "<a><b>1<c>2</c>3</b></a>", "<a><b>***</b></a>"),
        ("number(/a/b)", "<a><b> 1 </b></a>", "<a><b>***</b></a>"),
        ("/a/@x", "<a x = '1' y=\"2\" p:x='3' xmlns:p='u'/>", "<a x = '***' y=\"2\" p:x='***' xmlns:p='u'/>"),
        ("/a", "<p:a x='1' xmlns:p='u' xmlns='v'>2</p:a>", "<p:a x='***' xmlns:p='u' xmlns='v'>***</p:a>"),
        ("/a/@x", "<a y='x=&quot;1&quot;' x='/>'>x='1'</a>", "<a y='x=&quot;1&quot;' x='***'>x='1'</a>"),
        ("/a/b", "<a><b><!-- 1 --><![CDATA[</b>]]><b>2</b></b></a>", "<a><b>***</b></a>"),
        ("/a/b", "<a><b/><b x='1'/><b></b></a>", "<a><b/><b x='***'/><b>***</b></a>"),
        ("/a/größe", "<a><größe>ü</größe><x>ü</x></a>", "<a><größe>***</größe><x>ü</x></a>"),
        ("/b", "<a>1</a>", "<a>1</a>"),
        ("/a/b", "\ufeff<a><b>1</b></a>", "\ufeff<a><b>***</b></a>"),
    ],
)
def test_values_are_replaced(paths: str, before: str, after: str) -> None:
    assert mask(paths).body(before.encode()) == after.encode()


def test_paths_may_overlap() -> None:
    body = b"<a x='1'><b y='2'>3</b><c>4</c></a>"
    assert mask("/a/b", "/a/b/@y", "/a/c").body(body) == b"<a x='1'><b y='***'>***</b><c>***</c></a>"
    assert mask("/a/b", "/a", "/a/@x").body(body) == b"<a x='***'>***</a>"
    assert list(mask("/a/@x", "/a/b").hidden(body)) == ["1", "3", "2", "3"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "iso-8859-1"])
def test_other_encodings_become_utf_8(encoding: str) -> None:
    text = "<?xml version='1.0' encoding='iso-8859-1'?><a><b>ü</b><c>ö</c></a>"
    mark = b"\xff\xfe" if encoding == "utf-16-le" else b""
    assert mask("/a/b").body(mark + text.encode(encoding)) == text.replace("ü", "***").encode()


@pytest.mark.parametrize("body", [b"", b"<a", b"{}", b"<!DOCTYPE a><a/>", b"<a>\x00</a>", b"<a>" * 5 + b"</a>" * 5])
def test_other_bodies_have_no_mask(body: bytes) -> None:
    assert mask("/a").body(body, Bounds(depth=4)) is None
    assert list(mask("/a").hidden(body, Bounds(depth=4))) == []
    assert mask("/a").body(b"<a>12345</a>", Bounds(size=11)) is None


@given(st.lists(TEXT, min_size=3, max_size=3), st.sampled_from(["/o/a", "/o/a/@x", "/o/b[2]"]))
def test_the_masked_body_has_the_other_values_and_none_under_the_path(texts: list[str], path: str) -> None:
    one, two, three = (f"begin{number}{text}end{number}" for number, text in enumerate(texts))
    body = f"<o><a x={quoteattr(one)}>{escape(two)}</a><b>b</b><b>{escape(three)}</b></o>".encode()
    hidden = set(mask(path).hidden(body))
    masked = mask(path).body(body)
    assert masked is not None
    for name, value in (("/o/a/@x", one), ("/o/a", two), ("/o/b[2]", three)):
        read = next(Body(masked).values(parse_xpath(name)))
        assert read == ("***" if value in hidden else value)
    assert hidden == {"/o/a": {one, two}, "/o/a/@x": {one}, "/o/b[2]": {three}}[path]
