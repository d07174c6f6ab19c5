"""STOMP 1.2: ActiveMQ Artemis, and other brokers that speak it."""
