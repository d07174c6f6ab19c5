"""Types of the Kafka client for code outside this package that runs for each record, or inside a client's callbacks.

A conversion of each record and position to a type of the project would cost as much as the rest of the work on it.
"""

from __future__ import annotations

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka import Message as KafkaMessage
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, TopicDescription

__all__ = [
    "OFFSET_BEGINNING",
    "OFFSET_END",
    "AdminClient",
    "Consumer",
    "KafkaError",
    "KafkaException",
    "KafkaMessage",
    "ListOffsetsResultInfo",
    "Producer",
    "TopicCollection",
    "TopicDescription",
    "TopicPartition",
]
