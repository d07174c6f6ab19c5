"""STOMP 1.2 connector: source and sink for ActiveMQ Artemis and other brokers that implement STOMP 1.2."""
