"""The pages of topics and records, with a stand-in for Kafka: what they show, and that nothing in them is run."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UnreachableError, UsageError
from engine.find.timeline import TimelineEvent
from engine.kafka.reader import Position
from engine.page import messages
from engine.page.body_view import BodyForm, preview, shown_body
from routes.predicate.bodies import BodyDocument, UnreadableBodyError
from tests.unit.page.bridge import CONFIGURATION, LOGIN, Page
from tests.unit.page.kafka_records import HOSTILE, KafkaRecords, located

JOURNAL = "jms-bridge.journal"


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> KafkaRecords:
    return KafkaRecords(monkeypatch)


@pytest.fixture
def page(tmp_path: Path, kafka: KafkaRecords) -> Page:
    return Page(tmp_path)


def test_the_list_has_every_topic_of_the_bridge(page: Page, kafka: KafkaRecords) -> None:
    kafka.put("orders", *(located("orders", n) for n in range(5)))
    text = page.text("/messages")
    for name in (JOURNAL, "orders", "dead", "dead.quarantine", "jms-bridge.sink.nats"):
        assert f'href="/messages/{name}"' in text
    assert "route orders" in text
    assert text.count("does not exist yet") == 4


def test_records_are_paged_backwards_and_forwards(page: Page, kafka: KafkaRecords) -> None:
    kafka.put("orders", *(located("orders", n) for n in range(120)))
    seen: list[str] = []
    paths = ["/messages/orders"]
    while True:
        text = page.text(paths[-1])
        seen += re.findall(r'href="/messages/orders/0/(\d+)"', text)
        older = re.search(r'href="([^"]+)">Older', text)
        if not older:
            break
        paths.append(html.unescape(older[1]))
    assert seen == [str(n) for n in reversed(range(120))]
    assert len(paths) == 3
    newer = re.search(r'href="([^"]+)">← Newer', page.text(paths[2]))
    assert newer
    assert re.findall(r"/orders/0/(\d+)", page.text(html.unescape(newer[1])))[0] == "69"
    newest = re.search(r'href="([^"]+)">← Newer', page.text(paths[1]))
    assert newest
    assert newest[1] == "/messages/orders"


def test_records_are_filtered_by_a_predicate_and_a_wrong_one_is_told(page: Page, kafka: KafkaRecords) -> None:
    kafka.put("orders", *(located("orders", n, JMSType="odd" if n % 2 else "even") for n in range(20)))
    text = page.text("/messages/orders?where=JMSType%3D%27odd%27")
    assert len(re.findall(r'"/messages/orders/0/\d+"', text)) == 10
    assert "20 records were read." in text
    assert "where%3D" not in text
    wrong = page.client.get("/messages/orders?where=a+%3D")
    assert wrong.status_code == 400
    assert re.search(r"where(:[0-9]+)* error:", wrong.text.replace(": error", " error"))
    assert page.client.get("/messages/orders?before=x").status_code == 400
    assert page.client.get("/messages/orders?count=0").status_code == 400


def test_live_records_are_fetched_again_and_again(page: Page, kafka: KafkaRecords) -> None:
    kafka.put("orders", located("orders", 1))
    assert 'data-live="2"' in page.text("/messages/orders?live=1")
    assert "data-live" not in page.text("/messages/orders")


def test_a_topic_that_is_not_the_bridge_s_is_not_shown(page: Page, kafka: KafkaRecords) -> None:
    kafka.put("secret", located("secret", 1))
    for path in ("/messages/secret", "/messages/secret/0/1", "/messages/secret/0/1/body"):
        answer = page.client.get(path)
        assert answer.status_code == 404, path
        assert "is not a topic of this bridge" in html.unescape(answer.text)


@pytest.mark.parametrize("path", ["/messages/orders/0/9", "/messages/orders/x/1", "/messages/orders/0/-1"])
def test_a_record_that_is_not_there_is_not_found(page: Page, kafka: KafkaRecords, path: str) -> None:
    kafka.put("orders", located("orders", 1))
    assert page.client.get(path).status_code == 404


def test_without_kafka_every_page_says_so(page: Page, kafka: KafkaRecords) -> None:
    kafka.error = UnreachableError("Kafka at 127.0.0.1:1 does not answer")
    for path in ("/messages", "/messages/orders", "/messages/orders/0/1", "/messages/orders/0/1/body"):
        answer = page.client.get(path)
        assert answer.status_code == 503
        assert "Kafka at 127.0.0.1:1 does not answer" in answer.text


def test_a_published_record_leads_to_its_journal_record_and_back(page: Page, kafka: KafkaRecords) -> None:
    kafka.put("orders", located("orders", 1, headers=[("jmsbridge.position", f"{JOURNAL}:2:77:1".encode())]))
    text = page.text("/messages/orders/0/1")
    assert f'href="/messages/{JOURNAL}/2/77"' in text
    assert f"header=jmsbridge.position%3D{JOURNAL}%3A2%3A77&" in html.unescape(text)
    kafka.put(JOURNAL, located(JOURNAL, 5))
    text = html.unescape(page.text(f"/messages/{JOURNAL}/0/5"))
    header = f"header=jmsbridge.position%3D{JOURNAL}%3A0%3A5"
    assert f"/find?{header}&{header}%3A1&kind=destination&kind=sink&kind=dead-letters" in text
    assert f"/try?position={JOURNAL}%3A0%3A5" in text.replace(f"{JOURNAL}:0:5", f"{JOURNAL}%3A0%3A5")


def test_a_body_with_a_schema_is_shown_by_it(page: Page, kafka: KafkaRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    class Documents:
        def has_schema(self, *_: object) -> bool:
            return True

        def document(self, body: bytes, _: object) -> BodyDocument:
            if body == b"\0":
                msg = "the bytes end"
                raise UnreadableBodyError(msg)
            return BodyDocument("AVRO", b'{"id":7}')

    kafka.put("orders", located("orders", 0, b"\0\1\2"), located("orders", 1, b"\0"))
    monkeypatch.setattr(messages, "documents_of", lambda *_: Documents())
    text = html.unescape(page.text("/messages/orders/0/0"))
    assert "AVRO, by its schema" in text
    assert '{\n  "id": 7\n}' in text
    assert "by its schema" not in page.text("/messages/orders/0/1")


def test_a_dead_letter_leads_to_its_own_page_and_its_trace_is_told(page: Page, kafka: KafkaRecords) -> None:
    trace = ("traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    kafka.put("dead", located("dead", 1, headers=[trace]))
    kafka.put("dead.quarantine", located("dead.quarantine", 1))
    text = page.text("/messages/dead/0/1")
    assert 'href="/dead-letters/letter/0/1"' in text
    assert "4bf92f3577b34da6a3ce929d0e0e4736" in text
    assert 'href="/dead-letters/letter/0/1?quarantine=1"' in page.text("/messages/dead.quarantine/0/1")


def test_records_dead_letters_and_timelines_link_to_the_trace(tmp_path: Path, kafka: KafkaRecords) -> None:
    page = Page(tmp_path, CONFIGURATION + "tracing.link=https://jaeger.example/trace/{trace-id}?a=1&b='2'\n")
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    kafka.put("orders", located("orders", 1, headers=[("traceparent", f"00-{trace}-00f067aa0ba902b7-01".encode())]))
    kafka.put("orders", located("orders", 2, headers=[("traceparent", HOSTILE.encode())]))
    link = f"https://jaeger.example/trace/{trace}?a=1&amp;b=&#39;2&#39;"
    assert f'<a href="{link}"><code>{trace}</code></a>' in page.text("/messages/orders/0/1")
    assert "jaeger.example" not in page.text("/messages/orders/0/2")
    kafka.events = (TimelineEvent(0, "journaled", "by source 's'", None, html.unescape(link)),)
    assert f'by source &#39;s&#39; <a href="{link}">trace</a>' in page.text("/messages/orders/0/1/timeline")


def test_the_timeline_has_its_events_with_the_time_between_them(page: Page, kafka: KafkaRecords) -> None:
    kafka.put("orders", located("orders", 1))
    kafka.events = (
        TimelineEvent(1_790_000_000_000, "taken", HOSTILE, Position(JOURNAL, 0, 7)),
        TimelineEvent(None, "waiting", "the sink has not come to it"),
        TimelineEvent(1_790_000_000_025, "published", "", Position("orders", 0, 1)),
    )
    assert 'data-load="/messages/orders/0/1/timeline"' in page.text("/messages/orders/0/1")
    text = page.text("/messages/orders/0/1/timeline")
    assert "<img" not in text
    assert f'href="/messages/{JOURNAL}/0/7"' in text
    assert re.findall(r'data-label="After" class="num">([^<]*)<', text) == ["\u2013", "\u2013", "25 ms"]
    kafka.untold = UsageError("not one that this bridge has written")
    answer = page.client.get("/messages/orders/0/1/timeline")
    assert answer.status_code == 400
    assert "not one that this bridge has written" in answer.text
    assert page.client.get("/messages/secret/0/1/timeline").status_code == 404


def test_what_a_message_holds_is_shown_and_not_run(page: Page, kafka: KafkaRecords) -> None:
    hostile = located("orders", 1, HOSTILE.encode(), [(HOSTILE, HOSTILE.encode())], JMSCorrelationID=HOSTILE)
    kafka.put("orders", hostile)
    for path in ("/messages/orders", "/messages/orders/0/1", "/messages/orders/0/1?as=hex"):
        text = page.text(path)
        assert "<img" not in text
        assert not {"\x1b", "\u202e"} & set(text)
    policy = page.client.get("/messages/orders/0/1").headers["content-security-policy"]
    assert "script-src 'self'" in policy
    # What a URL holds is shown as well.
    for path in ("/messages/%3Cimg%3E", "/messages/orders?where=%3Cimg%3E&since=%3Cimg%3E&before=%3Cimg%3E"):
        assert "<img" not in page.client.get(path).text


def test_a_body_is_a_file_that_no_browser_opens(page: Page, kafka: KafkaRecords) -> None:
    for number, (body, suffix) in enumerate(
        [(b'{"a":1}', "json"), (b"<a/>", "xml"), (b"x", "txt"), (b"\xff\0", "bin")]
    ):
        kafka.put("orders", located("orders", number, body))
        answer = page.client.get(f"/messages/orders/0/{number}/body")
        assert answer.content == body
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"] == f'attachment; filename="orders-0-{number}.{suffix}"'
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_messages_need_the_login(tmp_path: Path, kafka: KafkaRecords) -> None:
    kafka.put("orders", located("orders", 1))
    page = Page(tmp_path, login=True)
    for path in ("/messages", "/messages/orders", "/messages/orders/0/1", "/messages/orders/0/1/body", "/find"):
        assert page.client.get(path).status_code == 401
        assert page.client.get(path, headers=LOGIN).status_code == 200


def test_a_record_is_tried_as_it_is(page: Page, kafka: KafkaRecords) -> None:
    fields = {"JMSCorrelationID": "42", "JMSDestination": "events.new"}
    kafka.put(JOURNAL, located(JOURNAL, 1, b"\xff\0", **fields))
    text = page.text(f"/try?position={JOURNAL}:0:1")
    assert "published to nats:events" in text
    assert "was tried as it is" in text
    assert 'value="events.new"' in text
    assert page.client.get("/try?position=x").status_code == 400
    assert page.client.get("/try?position=secret:0:1").status_code == 400


def test_a_published_record_is_not_taken_for_one_that_comes_back(page: Page, kafka: KafkaRecords) -> None:
    kafka.put("orders", located("orders", 1, headers=[("jmsbridge.origin", b"b1")], JMSDestination="events.new"))
    assert "published to nats:events" in page.text("/try?position=orders:0:1")


@pytest.mark.parametrize(
    ("body", "form", "text"),
    [
        (b'{"a":1.10,"b":[1,{"c":"}\\""}],"d":{}}', BodyForm.JSON,
         '{\n  "a": 1.10,\n  "b": [\n    1,\n    {\n      "c": "}\\""\n    }\n  ],\n  "d": {}\n}'),
        (b'{"a": 1e99999, "a": 2}', BodyForm.JSON, '{\n  "a": 1e99999,\n  "a": 2\n}'),
        (b'<a x="1"><b>t</b><c/><d>u<e/></d></a>', BodyForm.XML,
         '<a x="1">\n  <b>t</b>\n  <c/>\n  <d>u\n    <e/>\n  </d>\n</a>'),
        (b'<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>', BodyForm.TEXT, '<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>'),
        (b"{not json", BodyForm.TEXT, "{not json"),
        (b"12", BodyForm.TEXT, "12"),
        (b"", BodyForm.TEXT, ""),
        (b"\xff\0ab", BodyForm.HEX, "00000000  ff 00 61 62                                       ..ab"),
    ],
)  # fmt: skip
def test_a_body_is_shown_in_the_form_that_it_has(body: bytes, form: BodyForm, text: str) -> None:
    shown = shown_body(body)
    assert (shown.form, shown.text) == (form, text)
    assert shown_body(body, "hex").form is BodyForm.HEX
    assert shown_body(body, "nothing").form is form


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    ),
    st.sampled_from([None, 1]),
)
def test_json_means_the_same_when_it_is_shown(value: object, indent: int | None) -> None:
    text = json.dumps([value], indent=indent)
    shown = shown_body(text.encode())
    assert shown.form is BodyForm.JSON
    assert json.loads(shown.text) == [value]


@pytest.mark.parametrize(
    "body",
    [b"[" * 60_000 + b"]" * 60_000, b"[" * 900 + b"]" * 900, b"[" + b"1," * 60_000 + b"1]", b"9" * 100_000,
     b'{"a":' + b"9" * 100_000 + b"}", b"<a>" * 40_000, "ä".encode() * 200_000, b"\xff" * 1_000_000],
)  # fmt: skip
def test_no_body_makes_a_large_page(body: bytes) -> None:
    shown = shown_body(body)
    assert len(shown.text) < 4_000_000
    assert shown.size == len(body)
    assert len(preview(body)) < 200
