"""A system of messages in memory, as a new system is added: this folder and one line of the registry."""
