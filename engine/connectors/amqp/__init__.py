"""AMQP 1.0: ActiveMQ Artemis, and other brokers that speak it."""
