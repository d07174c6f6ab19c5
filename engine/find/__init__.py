"""Search for messages in all topics of a bridge at once: `jms-bridge find`.

`question` says what is looked for, `places` in which topics, `stretches` in which order these are read and where a
search goes on, `scanner` reads records in a JVM of its own, and `search` gives what is found, the newest first.
"""
