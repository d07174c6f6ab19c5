"""Explains in plain Python the router's treatment of one message, for `jms-bridge explain`.

The rules are those of `engine.router`, implemented by other means, so this package is also the oracle of the router's
tests.
"""

from engine.explain.explanation import Ending, Explanation, Failure, Step, explain

__all__ = ["Ending", "Explanation", "Failure", "Step", "explain"]
