"""Messages for a router at an even rate, and faults in its output."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from threading import Event, Thread

from confluent_kafka import Producer

from engine.message import Message
from routes.properties import Property
from tests.integration.bridge_process import read, wait
from tests.topic_records import ORDERED

__all__ = ["CONFIGURATION", "Load", "faults_of"]

CONFIGURATION = """\
bridge.id={routed}
embedded=off
kafka.bootstrap.servers={bootstrap}
embedded.data={folder}/var
http.address=127.0.0.1:{http}
journal.topic={journal}
router.mode={mode}
router.interval={interval}
source.jms.type=stomp
source.jms.url=stomp://127.0.0.1:9
source.jms.destinations=queue:orders
routes.all.in.include=region = 'emea'
routes.all.out.topic={routed}
"""
"""A bridge that routes the messages of a `Load`."""

_KEYS = 20


class Load:
    """Sends numbered messages of twenty keys, each to a partition of its key, until `stop`."""

    def __init__(self, bootstrap: str, journal: str, rate: int, first: int = 0) -> None:
        """Begins with the number `first`."""
        self.sent = self._first = first
        self._journal = journal
        self._rate = rate
        # Idempotent, so that the journal has each message once and in order also if a broker ends.
        settings = {"bootstrap.servers": bootstrap, "linger.ms": 0, **ORDERED, "log_level": 0}
        self._producer = Producer(settings)
        self._stop = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        begun = time.monotonic()
        while not self._stop.wait(0.01):
            for _ in range(int((time.monotonic() - begun) * self._rate) + self._first - self.sent):
                self._send(self.sent)
                self.sent += 1
            self._producer.poll(0)

    def _send(self, number: int) -> None:
        key = f"key-{number % _KEYS}"
        headers = {"JMSMessageID": f"ID:{number}", "JMSCorrelationID": key, "JMSDestination": "queue:orders"}
        record = Message(str(number).encode(), headers=headers, properties={"region": Property("emea")}).to_record()
        self._producer.produce(self._journal, record.value, key, headers=list(record.headers))

    def stop(self) -> int:
        """Stops sending; returns how many messages the journal has."""
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(60) == 0
        return self.sent


def faults_of(bootstrap: str, routed: str, count: int, seconds: float) -> list[str]:
    """Waits until `count` messages are routed; returns what is lost, doubled or out of order, empty if all is well."""

    def arrived() -> set[int]:
        return {int(value) for _, value in read(bootstrap, routed)}

    wait(lambda: len(arrived()) >= count, lambda: f"{len(arrived())} of {count} arrived", seconds)
    # What was sent twice may come a moment later.
    time.sleep(2.0)
    records = [(key, int(value)) for key, value in read(bootstrap, routed)]
    times = Counter(number for _, number in records)
    by_key: defaultdict[str, list[int]] = defaultdict(list)
    for key, number in records:
        by_key[key].append(number)
    return [
        *(f"{number} is lost" for number in range(count) if number not in times),
        *(f"{number} came {found} times" for number, found in sorted(times.items()) if found > 1),
        *(f"{key} is out of order" for key, numbers in sorted(by_key.items()) if numbers != sorted(numbers)),
    ]
