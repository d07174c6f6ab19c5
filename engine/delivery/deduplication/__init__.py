"""Detection of redelivered messages: a source recognises them by the tail of the journal.

`deduplicator` is the interface for the loop of sources. `seen_messages` decides which messages are the same and
`clean_ends` where the tail begins; both work without Kafka. `safe_offsets` stores the positions in Kafka, `tail` reads
the journal. Reasons: `docs/adr/0012-redelivery.md`.
"""
