"""The status page: what people see of a running bridge in a browser, and what they do with dead letters there.

Served by the supervisor beside `/metrics` (`engine.telemetry.http`), behind the same login. Pages are made of what the
supervisor has in memory (`view`, `samples`); only dead letters are read from Kafka, in threads and with a time limit
(`kafka`). `app` has the addresses, a module for each page stands beside it, templates and the style sheet in folders.
"""
