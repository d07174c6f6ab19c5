"""The AMQP 1.0 encoding: its type system, and the sections of a message. Pure functions without a connection.

`values` has a Python class for each AMQP type, `decoding` reads values from bytes, `encoding` writes them, `sections`
splits an encoded message into its sections and joins them again. Frames and performatives are in
`engine.connectors.amqp`.
"""
