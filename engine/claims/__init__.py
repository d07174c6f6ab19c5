"""Claim checks: bodies that are too large for topics, kept as files, to which records have a claim."""
