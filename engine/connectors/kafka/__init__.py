"""Kafka connector: a source that brings each record of Kafka topics into the journal exactly once."""
