"""Keys of a configuration: how a key is declared, the kinds of its values, and the settings that a file makes of them.

Below the typed values of a configuration, `routes.systems` and `routes.model`, whose fields declare keys with `key`.
"""
