"""The status page: a running bridge in a browser, where its operator can also replay and discard dead letters.

The supervisor serves it beside `/metrics` (`engine.telemetry.http`), behind the same login. Pages are made from data in
the supervisor's memory (`view`); only dead letters are read from Kafka, in threads and with a time limit
(`letters`). `app` has the addresses; templates and the style sheet are in folders.
"""
