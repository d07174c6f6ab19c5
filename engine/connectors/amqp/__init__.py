"""AMQP 1.0 connectors, for ActiveMQ Artemis and other brokers, and listeners that AMQP clients connect to."""
