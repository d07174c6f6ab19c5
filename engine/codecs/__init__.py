"""Wire formats: pure functions between bytes and messages. Knows no broker and no connection."""
