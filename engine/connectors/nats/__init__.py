"""NATS connector: source and sink for core NATS subjects and JetStream streams."""
