"""Schemas of bodies, keys and values: the registry, and what bodies with a schema say."""
