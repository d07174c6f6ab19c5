"""Delivery of messages between systems and Kafka: the loops of sources and sinks, deduplication, request and reply."""
