"""Methods on recorded evaluations: what each pays for, and which configuration it would choose."""

from collections.abc import Callable, Sequence
from typing import Protocol

from botorch_costly.problems import SubsetProblem

_ROUNDING = 1 + 1e-9  # of sums of costs


class Method(Protocol):
    """A method that chooses evaluations; told the values of those alone."""

    def ask(self) -> int | None:
        """Return the number of a candidate that was not asked for; None if it wants no more."""

    def tell(self, candidate: int, value: float, cost: float) -> None:
        """Hear what an evaluation came to."""

    def choice(self) -> int:
        """Return the candidate at the target that it would choose now."""


Maker = Callable[[SubsetProblem, int], Method]
"""Makes a method from a problem, of which it may read all but the values, and a seed."""


def play(
    problem: SubsetProblem, make: Maker, seed: int, budgets: Sequence[float]
) -> tuple[list[float], int]:
    """Return the regret of what is chosen when each budget is spent, and the number of evaluations.

    An evaluation that goes beyond a budget does not count for it.

    Args:
        problem: The evaluations.
        make: The method.
        seed: Of its draws.
        budgets: In mean costs of an evaluation at the target, ascending.
    """
    method, paid, regrets, asked = make(problem, seed), 0.0, list[float](), 0
    while len(regrets) < len(budgets):
        candidate = method.ask()
        cost = float("inf") if candidate is None else float(problem.costs[candidate])
        while len(regrets) < len(budgets) and paid + cost > _ROUNDING * budgets[len(regrets)]:
            regrets.append(problem.regret(method.choice()))
        if candidate is not None:
            method.tell(candidate, float(problem.told[candidate]), cost)
            paid, asked = paid + cost, asked + 1
    return regrets, asked
