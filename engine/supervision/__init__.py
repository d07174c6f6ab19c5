"""The processes of a bridge: a supervisor that starts its parts and keeps them running, and the parts' own side.

Start with `parts` (which parts there are), then `supervisor` (how they are kept running) and `worker` (the process of
one part). The status that a part reports to the supervisor is in `engine.telemetry.status`.
"""
