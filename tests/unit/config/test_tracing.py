"""Keys of `tracing`: what they mean, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.tracing_section import TracingConfig
from routes.config import lint_text, loads
from tests.unit.config.start import START


def tracing(*lines: str) -> TracingConfig:
    return loads(START + "\n".join(lines), base=Path()).tracing


def faults(*lines: str) -> list[tuple[str, str]]:
    """Keys that are wrong, and why."""
    return [(fault.key, fault.message) for fault in lint_text(START + "\n".join(lines)).faults]


def test_without_a_key_contexts_are_propagated_and_nothing_is_recorded() -> None:
    assert tracing() == TracingConfig(propagate=True, endpoint=None, sample_ratio=1.0)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
        ("https://[::1]:443/otlp/v1/traces", "https://[::1]:443/otlp/v1/traces"),
    ],
)
def test_an_endpoint_without_a_path_has_that_of_the_protocol(written: str, meant: str) -> None:
    assert tracing(f"tracing.endpoint={written}").endpoint == meant


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("127.0.0.1:4318", "'127.0.0.1:4318' is not http://host:port or https://host:port"),
        ("grpc://c:4317", "'grpc://c:4317' is not http://host:port or https://host:port"),
        ("http://collector", "'collector' is not a host and a port"),
        ("http://me:s3cret@c:4318", "this URL holds a host, a port and a path, and nothing else"),
        ("http://c:4318/?key=s3cret", "this URL holds a host, a port and a path, and nothing else"),
        ("me:s3cret@c://x", "'…@c://x' is not http://host:port or https://host:port"),
        ("http://c:4318/a b", "'http://c:4318/a b' has a path that no URL can have"),
    ],
)
def test_an_endpoint_is_a_url_of_http_without_secrets(written: str, why: str) -> None:
    assert faults(f"tracing.endpoint={written}") == [("tracing.endpoint", why)]


@pytest.mark.parametrize(("text", "value"), [("0", 0.0), ("1", 1.0), ("1.0", 1.0), ("0.001", 0.001), (".5", 0.5)])
def test_a_ratio_is_a_number_from_0_to_1(text: str, value: float) -> None:
    assert tracing(f"tracing.sample-ratio={text}").sample_ratio == value


@pytest.mark.parametrize("text", ["2", "1.1", "-0.1", "10%", "1e-3", "nan", "0,5", ""])
def test_anything_else_is_no_ratio(text: str) -> None:
    assert faults(f"tracing.sample-ratio={text}") == [
        ("tracing.sample-ratio", f"'{text}' is not a number from 0 to 1"),
    ]


def test_spans_need_the_headers_by_which_they_find_each_other() -> None:
    assert faults("tracing.propagate=false") == []
    assert faults("tracing.propagate=false", "tracing.endpoint=http://127.0.0.1:4318") == [
        ("tracing.propagate", "'false' tears the spans of sources and sinks apart"),
    ]


LINKS = (
    "https://jaeger.example/trace/{trace-id}",
    "http://[::1]:16686/trace/{trace-id}?uiEmbed=v0",
    "https://grafana.example/explore?left=%7B%22query%22:%22{trace-id}%22%7D",
    "https://ui.example/#/trace/{trace-id}",
)


@pytest.mark.parametrize("written", LINKS)
def test_a_link_leads_to_the_trace_with_an_id(written: str) -> None:
    found = tracing(f"tracing.link={written}").link_to("4bf92f3577b34da6a3ce929d0e0e4736")
    assert found == written.replace("{trace-id}", "4bf92f3577b34da6a3ce929d0e0e4736")
    assert tracing(f"tracing.link={written}").link_to("") == ""
    assert tracing().link_to("4bf92f3577b34da6a3ce929d0e0e4736") == ""


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("javascript:alert(1)//{trace-id}", "'javascript:alert(1)//{trace-id}' is not a URL of http or https"),
        ("JavaScript://x/%0aalert({trace-id})", "'JavaScript://x/%0aalert({trace-id})' is not a URL of http or https"),
        ("jaeger.example/{trace-id}", "'jaeger.example/{trace-id}' is not a URL of http or https"),
        ("https://jaeger.example/trace", "this URL lacks {trace-id} behind its host"),
        ("https://{trace-id}.example/", "this URL lacks {trace-id} behind its host"),
        ("https://me:s3cret@jaeger.example/{trace-id}", "a URL holds no user name and no password"),
        ("https://jae ger/{trace-id}", "'jae ger' is not a host, or a host and a port"),
        ('https://j.example/{trace-id}"onclick=x', "this URL has a character '\"'"),
        ("https://j.example/{trace-id}/{span-id}", "this URL has a character '{'"),
    ],
)
def test_a_link_is_a_url_of_http_with_the_placeholder(written: str, why: str) -> None:
    assert faults(f"tracing.link={written}") == [("tracing.link", why)]
