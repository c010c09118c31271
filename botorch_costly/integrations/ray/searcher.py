"""A searcher of Ray Tune that asks an offline optimizer."""

import logging
import math
from collections.abc import Mapping
from typing import Any

from botorch_costly.ask_tell import Optimizer
from botorch_costly.ask_tell.earlier_files import own
from botorch_costly.ask_tell.saving import read, write
from botorch_costly.calls import advised
from botorch_costly.errors import (
    HorizonExceededError,
    InvalidConfigError,
    StateMismatchError,
    check,
)
from botorch_costly.integrations.extras import require
from botorch_costly.integrations.metric_names import warn_of_name
from botorch_costly.integrations.offline import (
    Ended,
    OfflineTrials,
    ValueTrials,
    cost_of,
    stored_number,
)

try:
    from ray.tune.search import Searcher
except ImportError:
    Searcher = object

_MODES = {"max": True, "min": False}
_logger = logging.getLogger(__name__)


class OfflineSearcher(Searcher):
    """Search with earlier studies, by learning curves, or on subsets of the data.

    Each trial is an evaluation of the optimizer: its ``config`` holds the configuration and, if there are
    any, its iterations or fidelities; Ray adds the constants of ``param_space``. Running trials are
    pending. A failed trial counts as the worst value seen, or as diverged; a trial that a scheduler
    stops has the value that it had then. A trial that ends without a value is cancelled.

    Args:
        optimizer: A ``TransferOptimizer`` or ``SubsetOptimizer``; or ``CurveTrials`` of a
            ``CurveOptimizer``. Nothing else may ask and tell it.
        metric: Name of the reported metric.
        mode: ``"max"`` or ``"min"``, the direction of the optimizer.
        iterations: Name of the reported number of iterations, from 1, for curves.
        cost: Name of the reported cost of the trial so far, in any unit; by default its seconds. A trial
            without a cost gets the median cost of the others. If None, a trial costs its iterations or
            the product of its fidelities.

    Raises:
        InvalidArgumentError: If the optimizer is of another kind, or its direction differs from the mode.
        MissingExtraError: If Ray is missing, or older than 2.50.

    Example::

        searcher = OfflineSearcher(TransferOptimizer(space, [earlier]), metric="score", mode="max")
        tuner = tune.Tuner(train, tune_config=tune.TuneConfig(search_alg=searcher, num_samples=20))
    """

    @advised
    def __init__(
        self,
        optimizer: Optimizer[Any, Any] | OfflineTrials[Any],
        *,
        metric: str | None = None,
        mode: str | None = None,
        iterations: str = "training_iteration",
        cost: str | None = "time_total_s",
    ) -> None:
        require("ray", "2.50", "ray")
        super().__init__(metric=metric, mode=mode)
        self._trials = _trials_of(optimizer)
        self._iterations, self._cost = iterations, cost
        self._curves: dict[str, dict[int, float]] = {}  # of running trials, by iteration
        self._costs: dict[str, float] = {}  # of running and ended trials
        self._check_mode(mode)
        self._check_name()

    _metric: str | None
    _mode: str | None
    _has_warned = False

    def _check_mode(self, mode: str | None) -> None:
        expected = f"{'max' if self._trials.maximizes else 'min'!r}, the direction of the optimizer"
        is_valid = mode is None or _MODES.get(mode) is self._trials.maximizes
        check(is_valid, "mode", expected, mode)

    def _check_name(self) -> None:
        """Warn once if the metric has the name of one that is better in the other direction."""
        maximizes = self._trials.maximizes
        if self._metric is not None and not self._has_warned:
            advice = f"if so, construct the optimizer with maximize={not maximizes}"
            self._has_warned = warn_of_name(self._metric, maximizes=maximizes, advice=advice)

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any
    ) -> bool:
        """Take metric and mode of the run unless the constructor has set them.

        Raises:
            InvalidArgumentError: If the mode differs from the direction of the optimizer, or a constant
                has the name of a parameter of the optimizer.
        """
        self._check_mode(mode)
        taken = sorted(set(config) & set(self._trials.space.names))
        expected = "constants alone, because the optimizer has the search space"
        check(not taken, "param_space", expected, taken)
        self._metric = metric or self._metric
        self._mode = mode or self._mode
        self._check_name()
        return True

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        """Return the configuration of a trial.

        None while nothing is left to try but trials are running; ``FINISHED`` after them.
        """
        is_named = self._metric is not None
        check(is_named, "metric", "the name of a reported metric", self._metric)
        try:
            return self._trials.ask(trial_id)
        except HorizonExceededError:
            finished: str = Searcher.FINISHED
            return None if self._trials.under_way() else finished

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Keep the report of a running trial."""
        if self._trials.has_ended(trial_id):
            return
        value, iteration = result.get(str(self._metric)), result.get(self._iterations)
        if value is not None and iteration is not None:
            self._curves.setdefault(trial_id, {})[int(iteration)] = stored_number(value)
        cost = stored_number(result.get(str(self._cost)))
        if 0 < cost < math.inf:
            self._costs[trial_id] = cost

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Tell the outcome of a trial; a second call changes nothing."""
        report = dict(result or {})
        self.on_trial_result(trial_id, report)
        if trial_id not in self._trials.under_way() and not self._trials.has_ended(trial_id):
            self._enter(trial_id, report)
        setting = self._trials.under_way().get(trial_id)
        if setting is not None:
            ended = self._ended(trial_id, report, self._trials.iterations_of(setting), error=error)
            if ended.value is None and not error:
                self._trials.cancel(trial_id)
            else:
                self._trials.end(trial_id, ended)
        self._curves.pop(trial_id, None)

    def _enter(self, trial_id: str, report: Mapping[str, Any]) -> None:
        """Enter a trial that began after the present state was saved."""
        # Ray flattens a report before a searcher sees it.
        setting = {name: report.get(f"config/{name}") for name in self._trials.space.names}
        try:
            self._trials.enter(trial_id, setting)
        except InvalidConfigError:
            _logger.warning("Trial %s is not known, and is left out: %s.", trial_id, setting)

    def _ended(
        self, trial_id: str, report: Mapping[str, Any], planned: int | None, *, error: bool
    ) -> Ended:
        """Return the outcome of a trial with a planned number of iterations; None without curves."""
        curve = self._curves.get(trial_id, {})
        value = report.get(str(self._metric))
        if value is None and curve:
            value = curve[max(curve)]
        if planned is not None:
            curve = self._within(trial_id, curve, planned)
        short = planned is not None and max(curve, default=0) < planned
        return Ended(
            None if value is None else stored_number(value),
            curve if planned is not None else {},
            None if self._cost is None else cost_of(trial_id, self._costs),
            "failed" if error else "stopped" if short else "complete",
        )

    def _within(self, trial_id: str, curve: Mapping[int, float], planned: int) -> dict[int, float]:
        """Return a curve up to its planned end."""
        within = {i: value for i, value in curve.items() if 1 <= i <= planned}
        if len(within) < len(curve):
            _logger.warning(
                "Trial %s was to train for %d iterations and reports %d; others are left out.",
                trial_id,
                planned,
                max(curve),
            )
        return within

    def save(self, checkpoint_path: str) -> None:
        """Write the state to a file, which is replaced as a whole."""
        curves = {trial: sorted(curve.items()) for trial, curve in self._curves.items()}
        state = {"trials": self._trials.state_dict(), "curves": curves, "costs": dict(self._costs)}
        write(checkpoint_path, state)

    def restore(self, checkpoint_path: str) -> None:
        """Continue from a file.

        Raises:
            StateMismatchError: If the file is damaged, or belongs to another optimizer; the searcher is
                unchanged.
            OSError: If the file cannot be read.
        """
        try:
            state = read(checkpoint_path, ["trials", "curves", "costs"])
            curves = {trial: dict(curve) for trial, curve in state["curves"].items()}
            costs = dict(state["costs"])
        except (AttributeError, TypeError, ValueError) as error:
            expected = "a file that a searcher saved"
            raise StateMismatchError("checkpoint_path", expected, checkpoint_path) from error
        self._trials.load_state_dict(state["trials"])
        self._curves, self._costs = curves, costs
        own(checkpoint_path)


def _trials_of(optimizer: Any) -> OfflineTrials[Any]:
    trials = optimizer if isinstance(optimizer, OfflineTrials) else None
    if trials is None:
        expected = "a TransferOptimizer, a SubsetOptimizer, or CurveTrials of a CurveOptimizer"
        is_told_values = isinstance(optimizer, Optimizer) and optimizer.tells == "value"
        check(is_told_values, "optimizer", expected, optimizer)
        return ValueTrials(optimizer)
    anew = "CurveTrials of an optimizer with resumes=False, because each trial begins anew"
    check(not trials.resumes, "optimizer", anew, "resumes=True")
    return trials
