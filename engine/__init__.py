"""The bridge at work: the message, the topology and its router, Spark, the journal, connectors, and the command line.

Start with `message` (what flows), then `streams` and `router` (what is decided), then `supervisor` (what runs).
"""
