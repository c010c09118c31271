"""A plan as a function of the levels received so far: it continues if possible, or is rebuilt."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from botorch_costly.ask_tell.tariff import Stock
from botorch_costly.tuners.twins.plan import Plan
from botorch_costly.tuners.twins.run_budget import Step, Steps

Alone = Sequence[tuple[int, int | None]]


class Replay:
    """Steps of a plan by received levels; after an interruption or an earlier state the plan is rebuilt.

    Args:
        make: Function from a horizon to a plan that has received no level.
        horizons: Map from a number of received levels to the horizon from there on; it has the key 0.
    """

    def __init__(self, make: Callable[[int], Plan], horizons: Mapping[int, int]) -> None:
        self._make, self.horizons = make, dict(horizons)
        self.plan = make(self.horizons[0])
        self._steps: Steps[None] | None = None
        self._levels: list[float] = []
        self._alone: Alone = ()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a copy or a pickle, which rebuilds the steps from the levels."""
        return {**vars(self), "_steps": None}

    def step(self, levels: Sequence[float], alone: Alone, stocks: Sequence[Stock]) -> Step:
        """Return the step after some levels.

        Args:
            levels: Level after each step so far.
            alone: Periods without going back, each as two numbers of levels: received at its beginning,
                and at its end or None.
            stocks: Queries that the clock affords before each step, the next one included.
        """
        before, steps = self._levels, self._steps
        self._steps = None  # so that an error leads to a rebuild
        follows = len(levels) == len(before) + 1 and list(levels[:-1]) == before
        if steps is not None and follows and tuple(alone) == self._alone:
            if len(before) in self.horizons:
                self.plan.extend(self.horizons[len(before)])
            self.plan.budget.stock = stocks[len(levels)]
            step = steps.send(levels[-1])
        else:
            step, steps = self._rebuilt(levels, alone, stocks)
        self._levels, self._alone, self._steps = list(levels), tuple(alone), steps
        return step

    def _rebuilt(
        self, levels: Sequence[float], alone: Alone, stocks: Sequence[Stock]
    ) -> tuple[Step, Steps[None]]:
        self.plan = plan = self._make(self.horizons[0])
        plan.budget.stock = stocks[0]
        steps = plan.run()
        step = next(steps)
        for number in range(len(levels) + 1):
            if number in self.horizons and number > 0:
                plan.extend(self.horizons[number])
            for begin, end in alone:
                if number == begin:
                    steps = plan.alone()
                    step = next(steps)
                if number == end:
                    steps = plan.again()
                    step = next(steps, step)  # a shortened horizon may have no round left
            if number < len(levels):
                plan.budget.stock = stocks[number + 1]
                step = steps.send(levels[number])
        return step, steps
