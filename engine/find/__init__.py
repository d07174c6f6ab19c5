"""Search for messages, and the account of one message: wherever Kafka has them, whatever became of them.

It reads the topics of a bridge and changes nothing. `timeline` follows one message from any of its records.
"""
