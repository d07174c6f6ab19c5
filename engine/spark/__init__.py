"""Runtime of the router: one Spark session, one query at a time, and its recovery after stops and crashes.

    runtime           the router's main loop, which uses all modules below
    session           the Spark session
    shared_session    the session that test drivers of topologies share
    launch            start of its JVM with its settings, before PySpark is imported
    jvm               class path and process of that JVM
    warm_up           warm-up of Spark, in a standby and before a query
    publish_deadline  the time until which the JVM may publish
    generation        files that a run leaves in the checkpoint for the next one
    checkpoint_lock   lock of the checkpoint, and claims where there are no locks
    stored_files      files of a checkpoint on a local disk or on a file system of Hadoop
    hadoop_path       path on a file system of Hadoop
    position_store    notes about the generation in Kafka's state topic
    last_progress     choice between the two for the progress of the last run; checks of a start that need no Spark
    recovery          repair of what the last run left, and start of the next generation
    published         journal positions that are in the outputs already
    kafka_io          Spark's Kafka sources and sinks
    run               one generation while its query runs
    row_counters      counts of rows in the JVM
    router_metrics    metrics and log lines made from these counts
    lag               records that are not routed yet
    spark_metrics     figures of a query: its start, its batches, its JVM
    failures          exceptions of Spark as errors for users

The package does not know how a message is routed: that is `engine.router`.
"""
