"""Where the router runs: one Spark session, one query, and what makes it safe to stop and start.

    session      the JVM and its settings
    tally        what the JVM counts, row by row
    positions    offsets of the journal and of the outputs, as Kafka tells them
    generation   what a run leaves on disk for the next one
    recovery     from what the last run left to where the next one starts
    pipes        Kafka as Spark reads and writes it
    failures     what Spark throws, as errors for users
    lag          how far the query is behind the journal
    run          one generation while its query runs
    outage       how long Kafka may be away
    meter        what the JVM counted, as metrics and log lines
    runtime      the loop around all of these

Nothing here knows how a message is routed: that is `engine.router`.
"""
