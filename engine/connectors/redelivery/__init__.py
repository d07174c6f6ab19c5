"""Detection of redelivered messages: a source recognises them by the tail of the journal.

`repeats` is the interface for the loop of sources. `known` decides which messages are the same and `clean` where the
tail begins; both work without Kafka. `bookmarks` stores the positions in Kafka, `tail` reads the journal. Reasons:
`docs/adr/0012-redelivery.md`.
"""
