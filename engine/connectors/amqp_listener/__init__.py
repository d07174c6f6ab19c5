"""AMQP 1.0 server (`listen=true`): JMS clients connect to the bridge, without a broker between."""
