"""Tests of topologies, read from a file, for `jms-bridge topology test`: records and the expected results.

`cases` reads the file, with the YAML of `engine.route_tests.document`; `check` runs each case in a TopologyTestDriver
and compares. Needs no server.
"""

from engine.topology_tests.cases import DEFAULT_FILE, TopologyCase, read_topology_cases
from engine.topology_tests.check import TopologyResult, check_cases

__all__ = ["DEFAULT_FILE", "TopologyCase", "TopologyResult", "check_cases", "read_topology_cases"]
