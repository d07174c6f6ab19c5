"""The routing language and its configuration: text in, typed routes, predicates and Spark Columns out.

Knows no broker and no Spark session. Start with `model` (the values of a configuration), then `config` (the reading of
a properties file), then `predicate` (the language of `in.include` and `in.exclude`).
"""
