"""Measures the bridge against a Kafka Streams program that does the same work, on one machine and in one run.

    workload      the messages and the routes, the same for all
    broker        a Kafka of its own for each run
    programs      the Java programs in `peer/`: loader, peer, paced probe, verifier
    contestants   how peer and bridge are started on the workload
    processes     a process tree: its CPU, its memory, its end
    throughput    latency    memory    start       one measurement each
    codecs        frames of the Java NATS bridges, without a broker
    connectors/   each source and sink beside a bare loop of its client library
    jms_source    sources of Artemis beside JMS applications
    amqp_listener  what one JMS client gets accepted by the AMQP listener
    requests      request and reply through a whole bridge; asking asks and answers
    nexmark/      the benchmark of stream processors, beside Kafka Streams and Flink SQL
    python_engines/  topologies beside stream processors for Python
    feed          the input of both: a warm-up, and all other records at once
    report        tables, targets, JSON

`python -m bench --help` describes the options; docs/benchmarks.md says what is compared and how. This is not a test.
"""
