"""Journal records that are routed again, by the routes of today: `jms-bridge journal replay`.

`selection` says which records, `replay` writes the copies, each once.
"""
