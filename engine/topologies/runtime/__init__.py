"""Topologies that run: `definition` finds one in Python code, `layout` its topics and partitions, `run` runs it.

A topology runs as one Spark query with a task for each share of the partitions (`jmsbridge.streams` in `jvm/spark`).
Its state and Spark's checkpoint are in one folder, its outputs and positions in Kafka.
"""
