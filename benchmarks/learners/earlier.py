"""Other data sets as earlier studies of a search for the best learner."""

from functools import cache

from benchmarks.learners.problems import TOLD_EXACTLY, LearnerProblem, data_sets, problem_of
from benchmarks.learners.rivals import MostlyBest
from benchmarks.subsets.methods import Ours
from botorch_costly import Task

_EVERY = 5  # of the data sets that choose: 25 studies


@cache
def _study(data_set: int) -> Task:
    """Return what all learners came to on all fractions of a data set."""
    problem = problem_of(data_set, TOLD_EXACTLY)
    configs = [{**config, **at} for config, at in problem.candidates]
    return Task(configs, problem.told, costs=problem.costs, name=f"data set {data_set}")


class AfterOthers(Ours):
    """``SubsetOptimizer`` as it comes, with a fifth of the data sets that choose as earlier studies."""

    def __init__(self, problem: LearnerProblem, seed: int) -> None:
        others = [d for d in data_sets("choose")[::_EVERY] if d != problem.data_set]
        super().__init__(problem, seed, tasks=[_study(data_set) for data_set in others])
        self._untried = MostlyBest(problem, seed)

    def choice(self) -> int:
        """Return the learner that is believed best; before any value, the one that was mostly best."""
        return super().choice() if self._optimizer.observations else self._untried.choice()
