"""A plan as a function of what it has heard: it goes on where it can, or is made anew."""

from collections.abc import Callable, Sequence

from botorch_costly.tuners.twins.plan import Plan
from botorch_costly.tuners.twins.steps import Step, Steps


class Replay:
    """The steps of a plan by what was heard; an interruption or an earlier state makes the plan anew.

    Args:
        make: Returns a plan that has heard nothing.
    """

    def __init__(self, make: Callable[[], Plan]) -> None:
        self._make = make
        self.plan = make()
        self._steps: Steps[None] | None = None
        self._heard: list[float] = []
        self._alone_from: int | None = None

    def step(self, heard: Sequence[float], alone_from: int | None) -> Step:
        """Return the step after some levels.

        Args:
            heard: The level after each step so far.
            alone_from: How many of them came before going back was given up; None if it was not.
        """
        known, steps = self._heard, self._steps
        self._steps = None  # unless nothing is raised
        follows = len(heard) == len(known) + 1 and list(heard[:-1]) == known
        if steps is not None and follows and alone_from == self._alone_from:
            step = steps.send(heard[-1])
        else:
            step, steps = self._anew(heard, alone_from)
        self._heard, self._alone_from, self._steps = list(heard), alone_from, steps
        return step

    def _anew(self, heard: Sequence[float], alone_from: int | None) -> tuple[Step, Steps[None]]:
        self.plan = plan = self._make()
        steps = plan.run()
        step = next(steps)
        for number, level in enumerate(heard):
            if number == alone_from:
                steps = plan.alone()
                step = next(steps)
            step = steps.send(level)
        if alone_from is not None and alone_from >= len(heard):
            steps = plan.alone()
            step = next(steps)
        return step, steps
