"""Runtime of the router: one Spark session, one query at a time, and its recovery after stops and crashes.

    runtime      the router's main loop, which uses all modules below
    session      the Spark session and its settings
    jvm          start of the session's JVM
    warm         warm-up of Spark, in a standby and before a query
    start_checks checks of a start that need no Spark
    lease        lock of the checkpoint
    limit        the time until which the JVM may publish
    place        choice between checkpoint and state topic for the progress of the last run
    generation   files that a run leaves on disk for the next one
    notebook     notes about the generation in Kafka's state topic
    recovery     repair of what the last run left, and start of the next generation
    published    journal positions that are in the outputs already
    positions    offsets of the journal and of the outputs
    topics       checks of topics while the router runs
    pipes        Spark's Kafka sources and sinks
    run          one generation while its query runs
    readiness    time from the start of a query to its first message
    tally        counts of rows in the JVM
    meter        metrics and log lines made from these counts
    lag          records that are not routed yet
    vitals       figures of Spark and its JVM
    outage       time since Kafka was last usable
    failures     exceptions of Spark as errors for users

The package does not know how a message is routed: that is `engine.router`.
"""
