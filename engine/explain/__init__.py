"""What the router does to one message and why, in plain Python, for `jms-bridge explain`.

It follows the same rules as `engine.router` by other means, and so is also the oracle of the router's tests.
"""

from engine.explain.explanation import Ending, Explanation, Failure, Step, explain

__all__ = ["Ending", "Explanation", "Failure", "Step", "explain"]
