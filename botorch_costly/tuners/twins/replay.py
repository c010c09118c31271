"""A plan as a function of what it has heard: it goes on where it can, or is made anew."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from botorch_costly.tuners.twins.plan import Plan
from botorch_costly.tuners.twins.steps import Step, Steps

Alone = Sequence[tuple[int, int | None]]


class Replay:
    """The steps of a plan by what was heard; an interruption or an earlier state makes the plan anew.

    Args:
        make: Returns a plan of a horizon that has heard nothing.
        horizons: The horizon from each number of levels heard on, the first from 0 on.
    """

    def __init__(self, make: Callable[[int], Plan], horizons: Mapping[int, int]) -> None:
        self._make, self.horizons = make, dict(horizons)
        self.plan = make(self.horizons[0])
        self._steps: Steps[None] | None = None
        self._heard: list[float] = []
        self._alone: Alone = ()

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or a pickle holds: the steps are made anew from what was heard."""
        return {**vars(self), "_steps": None}

    def step(self, heard: Sequence[float], alone: Alone) -> Step:
        """Return the step after some levels.

        Args:
            heard: The level after each step so far.
            alone: How many of them came before going back was given up, and how many before it was taken
                up again, None if it was not: a pair for each time.
        """
        known, steps = self._heard, self._steps
        self._steps = None  # unless nothing is raised
        follows = len(heard) == len(known) + 1 and list(heard[:-1]) == known
        if steps is not None and follows and tuple(alone) == self._alone:
            step = steps.send(heard[-1])
        else:
            step, steps = self._anew(heard, alone)
        self._heard, self._alone, self._steps = list(heard), tuple(alone), steps
        return step

    def _anew(self, heard: Sequence[float], alone: Alone) -> tuple[Step, Steps[None]]:
        self.plan = plan = self._make(self.horizons[0])
        steps = plan.run()
        step = next(steps)
        for number in range(len(heard) + 1):
            if number in self.horizons and number > 0:
                plan.extend(self.horizons[number])
            for given_up, taken_up in alone:
                if number == given_up:
                    steps = plan.alone()
                    step = next(steps)
                if number == taken_up:
                    steps = plan.again()
                    step = next(steps, step)  # a horizon that was shortened since has no round left
            if number < len(heard):
                step = steps.send(heard[number])
        return step, steps
