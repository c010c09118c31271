"""A plan as a function of the levels received so far: it continues if possible, or is rebuilt."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from botorch_costly.ask_tell.tariff import Stock
from botorch_costly.tuners.twins.plan import Plan
from botorch_costly.tuners.twins.run_budget import Step, Steps

Alone = Sequence[tuple[int, int | None]]
# A number of received levels, and whether the step after them has been planned already. The horizon of
# one that a new period plans and that of the step that follows it need not be equal.
Moment = tuple[int, bool]
BEGIN: Moment = (0, False)


class Replay:
    """Steps of a plan by received levels; after an interruption or an earlier state the plan is rebuilt.

    Args:
        make: Function from a horizon to a plan that has received no level.
        horizon: Horizon at the beginning.
    """

    def __init__(self, make: Callable[[int], Plan], horizon: int) -> None:
        self._make, self.plan = make, make(horizon)
        self._steps: Steps[None] | None = None
        self._levels: list[float] = []
        self._alone: Alone = ()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a copy or a pickle, which rebuilds the steps from the levels."""
        return {**vars(self), "_steps": None}

    def step(
        self,
        levels: Sequence[float],
        alone: Alone,
        stocks: Sequence[Stock],
        horizons: Mapping[Moment, int],
    ) -> Step:
        """Return the step after some levels.

        Args:
            levels: Level after each step so far.
            alone: Periods without going back, each as two numbers of levels: received at its beginning,
                and at its end or None.
            stocks: Queries that the clock affords before each step, the next one included.
            horizons: Map from a moment to the horizon from there on; it has the key ``BEGIN``.
        """
        before, steps = self._levels, self._steps
        self._steps = None  # so that an error leads to a rebuild
        follows = len(levels) == len(before) + 1 and list(levels[:-1]) == before
        if steps is not None and follows and tuple(alone) == self._alone:
            _extend(self.plan, horizons, (len(before), True))
            self.plan.budget.stock = stocks[len(levels)]
            step = steps.send(levels[-1])
        else:
            step, steps = self._rebuilt(levels, alone, stocks, horizons)
        self._levels, self._alone, self._steps = list(levels), tuple(alone), steps
        return step

    def _rebuilt(
        self,
        levels: Sequence[float],
        alone: Alone,
        stocks: Sequence[Stock],
        horizons: Mapping[Moment, int],
    ) -> tuple[Step, Steps[None]]:
        self.plan = plan = self._make(horizons[BEGIN])
        plan.budget.stock = stocks[0]
        steps = plan.run()
        step = next(steps)
        for number in range(len(levels) + 1):
            _extend(plan, horizons, (number, False))
            for begin, end in alone:
                if number == begin:
                    steps = plan.alone()
                    step = next(steps)
                if number == end:
                    steps = plan.again()
                    step = next(steps, step)  # a shortened horizon may have no round left
            _extend(plan, horizons, (number, True))
            if number < len(levels):
                plan.budget.stock = stocks[number + 1]
                step = steps.send(levels[number])
        return step, steps


def _extend(plan: Plan, horizons: Mapping[Moment, int], moment: Moment) -> None:
    if moment in horizons:
        plan.extend(horizons[moment])
