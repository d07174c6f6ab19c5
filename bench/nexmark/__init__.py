"""Nexmark, the benchmark of stream processors, for topologies, Kafka Streams and Flink SQL.

events       the generator of persons, auctions and bids
queries      the queries as topologies
results      the fields of each query's result, and what a contestant published in the end
expected     the results computed in plain Python, for small inputs
contestants  how each program is started
measurement  the passes, their comparison and the table
"""
