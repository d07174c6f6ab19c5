"""Connectors: one folder for each external system, with all that is its own.

Each folder has a module `settings` with the settings of the system's sources and sinks and their keys, and a module
`system` with the checks between them and a `Connector` that makes them. Sources and sinks implement the contracts in
`base`; `engine.delivery` runs them. To add a system: its folder, a line in `routes.systems.SYSTEMS`, a page in
`docs/connectors`, and a harness in the conformance suite (`tests/integration/connectors`).
"""
