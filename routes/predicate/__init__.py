"""The language of `in.include` and `in.exclude`: JMS message selectors, and the shorter spelling with `msg.`."""
