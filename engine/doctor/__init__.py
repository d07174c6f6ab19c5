"""Checks everything that a bridge with a configuration needs, and suggests a remedy for each fault. Changes nothing.

`examination` puts the checks together, `checks` runs them at the same time; the other modules contain the checks.
"""

from engine.doctor.checks import Finding, Severity, exit_code
from engine.doctor.examination import examine, examine_connections

__all__ = ["Finding", "Severity", "examine", "examine_connections", "exit_code"]
