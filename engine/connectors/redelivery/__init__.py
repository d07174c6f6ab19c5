"""What brokers give again although the journal has it, and how a source knows: from the journal's own tail.

`repeats` is what the loop of sources uses. What is the same message is in `known`, where the tail begins in `clean`;
both know no Kafka. `bookmarks` keeps the beginnings in Kafka, `tail` reads. Why so: `docs/adr/0012-redelivery.md`.
"""
