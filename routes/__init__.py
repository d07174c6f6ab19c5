"""The routing language and its configuration: text in, typed routes, predicates and Spark Columns out.

Knows no broker and no Spark session. Start with `model` (what a configuration is), then `config` (how a
properties file becomes one), then `predicate` (the language of `in.include` and `in.exclude`).
"""
