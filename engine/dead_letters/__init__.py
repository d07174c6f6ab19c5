"""Dead letters for operators: read, listed and shown (`letter`), and sent back through the journal (`replay`).

The router writes them, see `engine.router.plan.failures`.
"""
