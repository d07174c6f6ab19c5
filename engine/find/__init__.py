"""Search for messages in all topics of a bridge at once, and the account of one message; changes nothing.

`question` says what is looked for, `places` in which topics, `stretches` in which order these are read and where a
search goes on, `scanner` reads records in a JVM of its own, and `search` gives what is found, the newest first.
`id_filters` leave out most of a search for an id; `filter_upkeep` has a running bridge write them.
`browse` pages through one topic. `timeline` follows one message from any of its records.
"""
