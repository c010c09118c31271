"""Arms of an experiment as trials of an optimizer that maximizes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from botorch_costly.integrations.ax.parameters import Parameters
from botorch_costly.integrations.offline import Ended, OfflineTrials, typical_cost
from botorch_costly.plain import Plain

Key = tuple[int, str]  # index of a trial and name of an arm
_NO_TRIAL = -1  # index before there is a trial; the name is a number then


class Arms:
    """An optimizer that maximizes, and the arms of an experiment that it knows.

    Args:
        parameters: Of the experiment.
        trials: Of an optimizer that maximizes, their settings those of the parameters.
        metric: Name of the objective.
        sign: A factor of its values, 1 or -1, after which larger ones are better.
        cost: Name of the metric of costs; None if these are not told.
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
        self._tried: list[dict[str, Plain]] = []  # of all arms of trials

    @property
    def optimizer(self) -> Any:
        """The optimizer of the trials."""
        return self._trials.optimizer

    def best(self) -> dict[str, Any] | None:
        """Return the parameters that are believed best, without fidelities; None before any value."""
        found = self._trials.best()
        return None if found is None else self.parameters.params(found)

    def fits(self, parameters: Parameters, metric: str, sign: int) -> bool:
        """Return whether the optimizer is one of this search space and objective."""
        same = self.parameters.space.fingerprint() == parameters.space.fingerprint()
        return same and (self._metric, self._sign) == (metric, sign)

    def read(self, experiment: Any, data: Any) -> None:
        """Learn what the arms of an experiment have come to."""
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
        asked = [one for one in self._without_trial() if under_way[one] == config]
        if key not in under_way and asked:
            self._trials.rename(asked[0], key)
        self._trials.enter(key, config)

    def _end(self, key: Key, status: Any, values: Mapping[Key, float]) -> None:
        """Tell what an arm has come to, if its trial is over and data of it are there."""
        complete = status.name == "COMPLETED"
        if complete and key in values:
            self._trials.end(key, Ended(self._sign * values[key], cost=self._cost_of(key)))
        elif status.is_terminal and not complete:
            self._trials.end(key, Ended(how="failed", cost=self._cost_of(key)))

    def _cost_of(self, key: Key) -> float | None:
        """Return the cost of an arm; the median of the others if its own is not known."""
        if self._cost is None:
            return None
        known = self._costs.get(key)
        return typical_cost(self._costs.values()) if known is None else known

    def ask(self, pending: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the parameters of the next arm.

        Args:
            pending: Parameters of arms under way, some of which may have no trial yet. What was asked
                for and is not among them is taken back.

        Raises:
            HorizonExceededError: If there is none left.
        """
        configs = [self.parameters.config(params) for params in pending]
        for key, setting in self._trials.under_way().items():
            if key[0] == _NO_TRIAL and setting not in configs:
                self._trials.cancel(key)
        for config in configs:
            known = [*self._tried, *self._trials.under_way().values()]
            if config is not None and config not in known:
                self._trials.enter(self._next_key(), config)
        return self.parameters.params(self._trials.ask(self._next_key(), self._as_run))

    def _next_key(self) -> Key:
        number = max((int(name) for _, name in self._without_trial()), default=-1)
        return (_NO_TRIAL, str(number + 1))

    def _as_run(self, config: Mapping[str, Plain]) -> Mapping[str, Plain]:
        """Return the configuration as Ax will have it, perhaps rounded to some digits."""
        found = self.parameters.config(self.parameters.params(config))
        return config if found is None else found

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values from which the arms are known again."""
        return self._trials.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``; raise StateMismatchError if it is not one of these arms."""
        self._trials.load_state_dict(state)


def _means(data: Any, metric: str) -> dict[Key, float]:
    """Return the mean of a metric of each arm; the latest where there are several."""
    columns = (data.df[name] for name in ("trial_index", "arm_name", "metric_name", "mean"))
    rows = zip(*columns, strict=True)
    return {(int(index), arm): float(mean) for index, arm, of, mean in rows if of == metric}
