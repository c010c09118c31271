"""The trials of a study as trainings: what they have reported so far, and what that has cost."""

import math
import statistics
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from botorch_costly.errors import check_count
from botorch_costly.integrations.offline import stored_number
from botorch_costly.integrations.optuna.distributions import Distributions
from botorch_costly.integrations.optuna.outcomes import reported
from botorch_costly.tuners.curves.trainings import Training, Trainings

_SHOWN = {"COMPLETE", "PRUNED", "FAIL", "RUNNING"}


class StudyCurves:
    """Reads trials as trainings, from their first report on.

    A trial whose last report is not finite, or that failed without a report, has diverged. The rest of a
    trial that failed otherwise, or was pruned, is unknown.

    Args:
        iterations: Iterations of a whole trial, or the name of the parameter that holds them.
        first_step: Step of the report after the first iteration.
        cost: User attribute with the cost of a trial so far; None for its seconds.

    Raises:
        InvalidArgumentError: If there are fewer than one iteration.
    """

    def __init__(self, iterations: int | str, first_step: int, cost: str | None) -> None:
        if not isinstance(iterations, str):
            iterations = check_count("iterations", iterations, minimum=1)
        self._iterations = iterations
        self._first_step, self._cost = first_step, cost

    def length_of(self, params: Mapping[str, Any]) -> int | None:
        """Return the iterations of a whole trial; None if its parameter is missing."""
        if isinstance(self._iterations, int):
            return self._iterations
        length = params.get(self._iterations)
        return None if length is None else check_count(self._iterations, length, minimum=1)

    def read(self, trials: Iterable[Any], distributions: Distributions, sign: float) -> Trainings:
        """Return the trainings, by number of the trial; rewards are ``sign`` times values.

        Trials that lack a parameter, or have one outside of its distribution, are left out.
        """
        known = [trial for trial in trials if trial.state.name in _SHOWN]
        read = [(t, distributions.config(t.params), self.length_of(t.params)) for t in known]
        shown = [(t, c, length) for t, c, length in read if c is not None and length is not None]
        curves = {trial.number: self._curve(trial, length, sign) for trial, _, length in shown}
        paid = {t.number: (self._cost_of(t), len(curves[t.number])) for t, *_ in shown}
        costs = _filled_in(paid)
        trainings = Trainings(
            distributions.space.encode, lambda config: self.length_of(config) or 1, sign
        )
        for trial, config, length in shown:
            curve, last = curves[trial.number], self._last(trial)
            diverged = not math.isfinite(last) if last is not None else trial.state.name == "FAIL"
            if not curve and not diverged:
                continue
            training = Training(
                trial.number,
                config,
                distributions.space.encode(config).double(),
                length,
                curve,
                paid=costs[trial.number],
                iterations=len(curve),
                broken=diverged,
                sign=sign,
            )
            trainings = trainings.with_one(training)
        return trainings

    def _last(self, trial: Any) -> float | None:
        """Return the last value of a trial; None before any."""
        if trial.state.name == "COMPLETE":
            return float(trial.value)
        reports = trial.intermediate_values
        return float(reports[max(reports)]) if reports else None

    def _curve(self, trial: Any, length: int, sign: float) -> tuple[float, ...]:
        """Return a reward for each iteration so far, NaN without a finite report."""
        reports = reported(trial, self._first_step)
        shown = {iteration: sign * value for iteration, value in reports.items()}
        if trial.state.name == "COMPLETE":
            shown.setdefault(length, sign * float(trial.value))
        last = max((i for i in shown if 1 <= i <= length), default=0)
        values = (shown.get(iteration, math.nan) for iteration in range(1, last + 1))
        return tuple(value if math.isfinite(value) else math.nan for value in values)

    def _cost_of(self, trial: Any) -> float:
        """Return the cost of a trial so far; NaN if unknown."""
        if self._cost is not None:
            return stored_number(trial.user_attrs.get(self._cost))
        if trial.datetime_start is None:
            return math.nan
        return ((trial.datetime_complete or datetime.now()) - trial.datetime_start).total_seconds()


def _filled_in(paid: Mapping[int, tuple[float, int]]) -> dict[int, float]:
    """Return costs by number; an unknown one is that of its iterations, at the median of the others.

    Args:
        paid: Costs, which may be NaN or 0 if unknown, and iterations.
    """
    known = {number for number, (cost, _) in paid.items() if 0 < cost < math.inf}
    each = [cost / done for number, (cost, done) in paid.items() if number in known and done]
    usual = statistics.median(each or [1.0])
    return {n: cost if n in known else usual * done for n, (cost, done) in paid.items()}
