"""A pruner of Optuna that weighs what the rest of a trial may bring against what it costs."""

import logging
import math
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from botorch_costly.calls import advised
from botorch_costly.errors import check, check_count, check_positive
from botorch_costly.integrations.extras import require
from botorch_costly.integrations.optuna.distributions import Distributions
from botorch_costly.integrations.optuna.outcomes import (
    OTHER_METRIC,
    PAIRS,
    are_opposite,
    attribute,
)
from botorch_costly.integrations.optuna.study_curves import StudyCurves
from botorch_costly.tuners.curves.lengths import Ladder
from botorch_costly.tuners.curves.rest_value import RestValue
from botorch_costly.tuners.curves.sparse import seem_sparse

try:
    from optuna.pruners import BasePruner
except ImportError:
    BasePruner = object
with suppress(ImportError):
    from optuna.search_space import intersection_search_space
    from optuna.trial import TrialState

_ENDS = 3  # complete trials whose last steps tell whether steps are iterations
_logger = logging.getLogger(__name__)


class CurvePruner(BasePruner):
    """Prune a trial whose rest promises less, by its cost, than a new trial would.

    A Gaussian process of all curves so far, over the parameters that trials share, predicts the final
    value of the running trial, and of a new one anywhere in the space. The trial is pruned if the
    expected improvement of its end by the cost until there is below ``ratio`` times the mean expected
    improvement of a new trial by its whole cost. It is asked at shares of a whole trial: 1/16, 1/8, 1/4,
    1/2 and 3/4. A trial that reports NaN is pruned, one whose latest value is better than that of every
    complete trial never.

    The decision hangs on the study's trials, of this process and of others, and a little on when this
    pruner was asked: the model is refitted for each 5 % more of data. How the sampler chooses is unknown,
    so that a new trial counts as one drawn at random. Parameters that not all trials share are left out;
    without a shared one nothing is pruned.

    Args:
        iterations: Iterations of a whole trial, or the name of the parameter that holds them.
        first_step: Step of the report after the first iteration: 0 if steps count from 0.
        cost: User attribute with the cost of a trial so far, which a trial sets before it reports; its
            seconds if omitted. The iterations count where there is no cost.
        ratio: What the rest of a trial must be worth, as a multiple of a new trial, by their costs.
        startup: Number of complete trials before the first is pruned.

    Raises:
        InvalidArgumentError: If an argument is outside its range; when a trial asks, if the study has
            several objectives.
        MissingExtraError: If Optuna is missing, or older than 4.0.

    Example::

        study = optuna.create_study(pruner=CurvePruner(iterations=27))
        study.optimize(objective, n_trials=50)
    """

    _warned = False  # whether it was said that a step lies beyond the iterations
    # Whether the last steps of complete trials were compared with them, and last reports with values.
    _knows_ends = _knows_metric = False

    @advised
    def __init__(
        self,
        iterations: int | str,
        *,
        first_step: int = 0,
        cost: str | None = None,
        ratio: float = 1.0,
        startup: int = 3,
    ) -> None:
        require("optuna", "4.0", "optuna")
        self._first_step = check_count("first_step", first_step)
        self._ratio = check_positive("ratio", ratio)
        self._startup = check_count("startup", startup, minimum=2)
        self._curves = StudyCurves(iterations, self._first_step, attribute(cost))
        self._ladder = Ladder(1)
        # Name of the study that the belief is of, and its distributions.
        self._known: tuple[str, dict[str, Any]] | None = None
        self._rest_value: RestValue | None = None
        self._lock = threading.Lock()  # trials of one process may run in threads

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_lock": None, "_rest_value": None, "_known": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    @advised
    def prune(self, study: Any, trial: Any) -> bool:
        """Return whether a trial ends now."""
        count = len(study.directions)
        check(count == 1, "study", "a study with one objective", f"{count} of them")
        reports = trial.intermediate_values
        if not reports:
            return False
        steps = sorted(reports)
        if math.isnan(reports[steps[-1]]):
            return True
        length = self._curves.length_of(trial.params)
        if length is not None:
            self._warn_of_steps(trial.number, steps[-1], length)
            if len(steps) == 1 and not (self._knows_ends and self._knows_metric):
                trials = [t for t in study.get_trials(deepcopy=False) if t.intermediate_values]
                complete = [t for t in trials if t.state == TrialState.COMPLETE]
                self._warn_of_few_steps(complete)
                self._warn_of_metric(complete)
        if length is None or not self._is_asked(steps, length):
            return False
        sign = 1.0 if study.direction.name == "MAXIMIZE" else -1.0
        listed = [
            trial if t.number == trial.number else t for t in study.get_trials(deepcopy=False)
        ]
        ends = [sign * t.value for t in listed if t.state == TrialState.COMPLETE]
        if len(ends) < self._startup or sign * reports[steps[-1]] > max(ends):
            return False
        with self._lock:
            return self._promises_less(study.study_name, trial, listed, sign)

    def _warn_of_steps(self, number: int, step: int, length: int) -> None:
        """Warn once if a step lies beyond the end of a trial."""
        done = step + 1 - self._first_step
        if done > length and not self._warned:
            self._warned = True
            _logger.warning(
                "Trial %d reports step %d, which is iteration %d, beyond the %d iterations of a whole "
                "trial that CurvePruner was told: later reports are left out, and trials may be pruned "
                "too early. Correct its iterations=, or its first_step= (%d), that of the first report.",
                *(number, step, done, length, self._first_step),
            )

    def _warn_of_metric(self, complete: Sequence[Any]) -> None:
        """Warn once if the values of complete trials fall where their last reports rise."""
        if self._knows_metric or len(complete) < PAIRS:
            return
        self._knows_metric = True
        if are_opposite(
            [(t.intermediate_values[max(t.intermediate_values)], t.value) for t in complete]
        ):
            _logger.warning(OTHER_METRIC)

    def _warn_of_few_steps(self, complete: Sequence[Any]) -> None:
        """Warn once if the first complete trials end at one and the same share of their iterations."""
        steps = [(max(t.intermediate_values), t) for t in complete]
        ends = [(s + 1 - self._first_step, self._curves.length_of(t.params)) for s, t in steps]
        known = [(done, length) for done, length in ends if done > 0 and length is not None]
        if self._knows_ends or len(known) < _ENDS:
            return
        self._knows_ends = True
        if seem_sparse(known):
            _logger.warning(
                "Complete trials end at iteration %d of the %d that CurvePruner was told: each step is "
                "taken for an iteration, and trials are pruned too late. Report the number of the "
                "iteration as the step, or correct iterations=.",
                *known[0],
            )

    def _is_asked(self, steps: Sequence[int], length: int) -> bool:
        """Return whether a rung before the end lies between the last report and the one before."""
        done = steps[-1] + 1 - self._first_step
        before = steps[-2] + 1 - self._first_step if len(steps) > 1 else 0
        return any(before < rung <= done < length for rung in self._ladder.rungs(length))

    def _promises_less(self, name: str, trial: Any, listed: Sequence[Any], sign: float) -> bool:
        """Return whether the rest of a trial promises less, by its cost, than a new one."""
        shared = intersection_search_space(listed, include_pruned=True)
        space = {name: d for name, d in shared.items() if not d.single()}
        if not space or not space.keys() <= trial.params.keys():
            return False
        distributions = Distributions(space)
        if self._rest_value is None or self._known != (name, space):
            self._rest_value = RestValue(distributions.space, self._ladder)
            self._known = name, space
        trainings = self._curves.read(listed, distributions, sign)
        own = next((t for t in trainings if t.number == trial.number), None)
        if own is None or not own.may_go_on:
            return False
        return self._rest_value.log_ratio(trainings, own) < math.log(self._ratio)
