"""The examples give what their descriptions say."""

from __future__ import annotations

from pyspark.sql import SparkSession

from engine.streams import TopologyTestDriver
from examples import (
    card_fraud,
    click_sessions,
    deduplication,
    enrichment,
    journal_router,
    order_totals,
    payment_alerts,
    word_count,
)

MINUTE = 60_000


def test_word_count(spark: SparkSession) -> None:
    driver = TopologyTestDriver(word_count.build(), spark)
    driver.pipe_input("lines", None, "To be, or not to be")
    assert [(each.key, each.value) for each in driver.read_output("words")] == [
        ("to", {"count": 1}),
        ("be", {"count": 1}),
        ("or", {"count": 1}),
        ("not", {"count": 1}),
        ("to", {"count": 2}),
        ("be", {"count": 2}),
    ]


def test_order_totals(spark: SparkSession) -> None:
    driver = TopologyTestDriver(order_totals.build(), spark)
    driver.pipe_input("customers", "ann", {"name": "Ann", "level": "gold"})
    driver.pipe_input("customers", "bob", {"name": "Bob", "level": "tin"})
    for customer, amount, time in (("ann", 5.5, 0), ("bob", 9, 1), ("ann", 4.5, 2), ("ann", 1, MINUTE + 9_999)):
        driver.pipe_input("orders", None, {"customer": customer, "amount": amount}, timestamp=time)
    driver.pipe_input("orders", None, {"customer": "ann", "amount": 2}, timestamp=MINUTE - 1)
    driver.pipe_input("orders", None, {"customer": "ann", "amount": 1}, timestamp=MINUTE + 10_000)
    driver.pipe_input("orders", None, {"customer": "ann", "amount": 100}, timestamp=MINUTE - 1)
    first, second = "1970-01-01T00:00:00.000Z", "1970-01-01T00:01:00.000Z"
    found = [(each.key, each.value["window_start"], each.value["total"]) for each in driver.read_output("gold-totals")]
    assert found == [
        ("ann", first, 5.5),
        ("ann", first, 10.0),
        ("ann", second, 1.0),
        ("ann", first, 12.0),
        ("ann", second, 2.0),
    ]
    assert driver.counts() == {("totals", "late_records"): 1}


def test_enrichment(spark: SparkSession) -> None:
    driver = TopologyTestDriver(enrichment.build(), spark)
    driver.pipe_input("accounts", "7", {"owner": "Ann"})
    driver.pipe_input("payments", None, {"account": "7", "amount": 12.5})
    driver.pipe_input("payments", None, {"account": "8", "amount": 1.5})
    assert [each.value for each in driver.read_output("payments-enriched")] == [
        {"account": "7", "amount": 12.5, "owner": "Ann"}
    ]
    assert [each.value for each in driver.read_output("payments-unknown")] == [{"account": "8", "amount": 1.5}]


def test_click_sessions(spark: SparkSession) -> None:
    driver = TopologyTestDriver(click_sessions.build(), spark)
    for page, minute in (("/home", 0), ("/shop", 10), ("/cart", 35), ("/home", 100)):
        driver.pipe_input("clicks", "ann", {"page": page}, timestamp=minute * MINUTE)
    assert [(each.key, each.value) for each in driver.read_output("sessions")] == [
        ("ann", {"pages": 3, "first": "/home", "seconds": 35 * 60})
    ]


def test_deduplication(spark: SparkSession) -> None:
    driver = TopologyTestDriver(deduplication.build(), spark)
    for name, minute in (("a", 0), ("b", 1), ("a", 9), ("a", 11)):
        driver.pipe_input("payments", None, {"id": name, "amount": minute}, timestamp=minute * MINUTE)
    assert [(each.key, each.value["amount"]) for each in driver.read_output("payments-once")] == [
        ("a", 0.0),
        ("b", 1.0),
        ("a", 11.0),
    ]


def test_journal_router(spark: SparkSession) -> None:
    driver = TopologyTestDriver(journal_router.build(), spark)
    order, region = ("jms.JMSType", b"order"), ("jms.region", b"emea")
    driver.pipe_input("jms-bridge.journal", "k", b"1", headers=[order, region, ("jms.JMSCorrelationID", b"c")])
    driver.pipe_input("jms-bridge.journal", "k", b"2", headers=[order])
    driver.pipe_input("jms-bridge.journal", "k", b"3", headers=[region])
    (european,) = driver.read_output("orders-emea")
    assert (european.key, european.value) == ("c", 1)
    assert european.headers[:2] == (order, region)
    assert [each.value for each in driver.read_output("orders-other")] == [2]
    assert [each.value for each in driver.read_output("other")] == [3]


def test_card_fraud(spark: SparkSession) -> None:
    driver = TopologyTestDriver(card_fraud.build(), spark)
    for card, amount, second in (("a", 0.5, 0), ("b", 900, 1), ("a", 20, 30), ("a", 700, 59), ("a", 800, 61)):
        driver.pipe_input("payments", card, {"amount": amount}, timestamp=second * 1_000)
    (alert,) = driver.read_output("alerts")
    assert (alert.key, alert.timestamp, alert.value) == ("a", 59_000, {"trial": 0.5, "amount": 700.0})
    assert list(driver.get_store("trials").all()) == []
    driver.close()


def test_payment_alerts(spark: SparkSession) -> None:
    driver = TopologyTestDriver(payment_alerts.build(), spark)
    payments = (("ann", 9_000, 0), ("bob", 9_000, 1), ("ann", 1_001, 2), ("ann", 5_000, 3), ("ann", 9_000, MINUTE))
    queue = ("jms.JMSDestination", b"queue:payments")
    for customer, amount, time in payments:
        headers = [queue, ("jms.customer", customer.encode()), ("jms.amount", b"%d" % amount)]
        driver.pipe_input("jms-bridge.journal", None, b"", timestamp=time, headers=headers)
    driver.pipe_input("jms-bridge.journal", None, b"", headers=[("jms.JMSDestination", b"queue:others")])
    (alert,) = driver.read_output("payment-alerts")
    expected = {"customer": "ann", "total": 10_001.0, "minute": "1970-01-01T00:00:00.000Z"}
    assert (alert.key, alert.value) == ("ann", expected)
    assert driver.rejected() == []
