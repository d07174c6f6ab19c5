"""The bridge at work: the message, the topology and its router, Spark, the journal, connectors, and the command line.

Start with `message` (the records), then `streams` and `router` (the decisions), then `supervisor` (the processes).
"""
