"""AMQP 1.0: its type system, and the sections of a message. Pure functions; knows no connection.

`values` says what each type is in Python, `decoding` and `encoding` turn bytes into values and back, `sections` takes a
message apart and puts it together.
"""
