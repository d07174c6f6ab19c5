"""Kafka topics as a source: each record is in the journal exactly once."""
