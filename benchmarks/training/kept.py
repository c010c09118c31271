"""A problem that keeps the run it sets up, for what a record of decisions does not hold."""

from typing import Any

from benchmarks.suite.protocol import OnlineProblem


class Kept:
    """The problem itself, whose latest run is at hand as ``run``."""

    def __init__(self, problem: OnlineProblem) -> None:
        self._problem = problem
        self.name, self.space, self.default = problem.name, problem.space, problem.default
        self.horizon = problem.horizon

    def setup(self, seed: int) -> Any:
        """Set up the run."""
        self.run: Any = self._problem.setup(seed)
        return self.run
