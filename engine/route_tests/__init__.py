"""Tests of routes, read from a file, for `jms-bridge test`: a message and its expected outcome. Needs no server.

`cases` reads the file, with `document` for its YAML; `check` asks `engine.explain` about each message and compares.
"""

from engine.route_tests.cases import DEFAULT_FILE, Case, Expected, read_cases
from engine.route_tests.check import Difference, Result, check

__all__ = ["DEFAULT_FILE", "Case", "Difference", "Expected", "Result", "check", "read_cases"]
