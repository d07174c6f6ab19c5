"""NATS: subjects of a server that speaks its client protocol, and streams of JetStream."""
