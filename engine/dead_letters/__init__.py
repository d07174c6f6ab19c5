"""Dead letters as people deal with them: read, listed and shown (`letter`), sent back through the journal (`replay`).

The router writes them, see `engine.router.failures`.
"""
