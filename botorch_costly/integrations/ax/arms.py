"""Arms of an experiment as trials of an optimizer that maximizes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from botorch_costly.integrations.ax.parameters import Parameters
from botorch_costly.integrations.offline import Ended, OfflineTrials, cost_of
from botorch_costly.plain import Plain

Key = tuple[int, str]  # index of a trial and name of an arm
_NO_TRIAL = -1  # index of an arm without a trial; its name is a number


class Arms:
    """Keeps an optimizer that maximizes in step with the arms of an experiment.

    Args:
        parameters: Parameters of the experiment.
        trials: Trials of the optimizer, over the search space of the parameters.
        metric: Name of the objective.
        sign: Factor, 1 or -1, by which larger values of the objective become better.
        cost: Name of the metric with costs; None to tell no costs.
    """

    def __init__(
        self,
        parameters: Parameters,
        trials: OfflineTrials[Any],
        metric: str,
        sign: int,
        cost: str | None = None,
    ) -> None:
        self.parameters, self._trials = parameters, trials
        self._metric, self._sign, self._cost = metric, sign, cost
        self._costs: dict[Key, float] = {}
        self._tried: list[dict[str, Plain]] = []  # configurations of all arms with a trial

    @property
    def optimizer(self) -> Any:
        """The optimizer of the trials."""
        return self._trials.optimizer

    def best(self) -> dict[str, Any] | None:
        """Return the parameters of the incumbent, without fidelities; None before any value."""
        best = self._trials.best()
        return None if best is None else self.parameters.params(best)

    def fits(self, parameters: Parameters, metric: str, sign: int) -> bool:
        """Return whether the optimizer has this search space and objective."""
        same = self.parameters.space.fingerprint() == parameters.space.fingerprint()
        return same and (self._metric, self._sign) == (metric, sign)

    def read(self, experiment: Any, data: Any) -> None:
        """Enter the arms of an experiment, and tell the outcomes of those that have ended."""
        values, self._tried = _means(data, self._metric), []
        costs = {} if self._cost is None else _means(data, self._cost)
        self._costs = {key: cost for key, cost in costs.items() if 0 < cost < math.inf}
        for index, trial in sorted(experiment.trials.items()):
            for arm in trial.arms:
                key, config = (index, arm.name), self.parameters.config(arm.parameters)
                if config is None:
                    continue
                self._tried.append(config)
                if not self._trials.has_ended(key):
                    self._enter(key, config)
                    self._end(key, trial.status, values)

    def _without_trial(self) -> list[Key]:
        return [key for key in self._trials.under_way() if key[0] == _NO_TRIAL]

    def _enter(self, key: Key, config: dict[str, Plain]) -> None:
        under_way = self._trials.under_way()
        asked = [number for number in self._without_trial() if under_way[number] == config]
        if key not in under_way and asked:
            self._trials.rename(asked[0], key)
        self._trials.enter(key, config)

    def _end(self, key: Key, status: Any, values: Mapping[Key, float]) -> None:
        """Tell the outcome of an arm if its trial is over and has data."""
        complete = status.name == "COMPLETED"
        if complete and key in values:
            self._trials.end(key, Ended(self._sign * values[key], cost=self._cost_of(key)))
        elif status.is_terminal and not complete:
            self._trials.end(key, Ended(how="failed", cost=self._cost_of(key)))

    def _cost_of(self, key: Key) -> float | None:
        return None if self._cost is None else cost_of(key, self._costs)

    def ask(self, pending: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the parameters of the next arm.

        Args:
            pending: Parameters of running arms; some may have no trial yet. Arms that were asked for and
                are not among them are cancelled.

        Raises:
            HorizonExceededError: If no configuration is left.
        """
        configs = [self.parameters.config(params) for params in pending]
        for key, setting in self._trials.under_way().items():
            if key[0] == _NO_TRIAL and setting not in configs:
                self._trials.cancel(key)
        for config in configs:
            entered = [*self._tried, *self._trials.under_way().values()]
            if config is not None and config not in entered:
                self._trials.enter(self._next_key(), config)
        return self.parameters.params(self._trials.ask(self._next_key(), self._as_run))

    def _next_key(self) -> Key:
        number = max((int(name) for _, name in self._without_trial()), default=-1)
        return (_NO_TRIAL, str(number + 1))

    def _as_run(self, config: Mapping[str, Plain]) -> Mapping[str, Plain]:
        """Return the configuration as Ax runs it, perhaps rounded to some digits."""
        rounded = self.parameters.config(self.parameters.params(config))
        return config if rounded is None else rounded

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the trials in tensors and plain values."""
        return self._trials.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``; raise StateMismatchError if it belongs to another optimizer."""
        self._trials.load_state_dict(state)


def _means(data: Any, metric: str) -> dict[Key, float]:
    """Return the mean of a metric of each arm; the latest one if there are several."""
    columns = (data.df[name] for name in ("trial_index", "arm_name", "metric_name", "mean"))
    rows = zip(*columns, strict=True)
    return {(int(index), arm): float(mean) for index, arm, name, mean in rows if name == metric}
