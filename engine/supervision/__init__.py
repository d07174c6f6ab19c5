"""Processes: a supervisor that starts the parts of a bridge and keeps them running, and the side of each part.

Start with `parts` (which there are), then `supervisor` (how they are kept) and `worker` (what one does). What passes
between the two sides is `engine.telemetry.status`.
"""
