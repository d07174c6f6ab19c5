"""Wire formats: pure functions between bytes and messages, without brokers or connections."""
