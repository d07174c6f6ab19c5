"""Kafka in Python: the only package that imports `confluent_kafka`.

`settings` translates the `kafka.*` keys, `clients` makes every client, `errors` has the kinds of Kafka's errors and the
remedies of its refusals, `retry` waits for Kafka up to `router.outage-timeout`. On these stand `reader` (a topic, for
commands), `journal` and `transactions` (producers), `offsets`, `cluster` (admin client) and `topics` (the topics that a
configuration needs). `types` names the client's own types for code outside this package that runs for each record.
"""
