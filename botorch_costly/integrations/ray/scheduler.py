"""A scheduler of Ray Tune: population based training whose configurations a posterior chooses."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from botorch_costly.ask_tell.design import sobol
from botorch_costly.calls import advised
from botorch_costly.errors import check, check_count
from botorch_costly.integrations.extras import require
from botorch_costly.randomness import check_seed
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.population import PopulationBelief

try:
    from ray.tune.schedulers import PopulationBasedTraining
except ImportError:
    PopulationBasedTraining = object


class PopulationScheduler(PopulationBasedTraining):
    """Ray's population based training with a ``PopulationBelief`` in place of PB2's own model.

    The trials of a run are the members. They wait for each other every ``interval``; then the worst
    quarter, and trials whose metric is not finite, continue from checkpoints of the best quarter, with
    configurations that the posterior chooses given those of the other trials. The first trial begins with
    its ``param_space``, the others with a design over the whole space.

    Args:
        space: Search space of numbers and choices.
        metric: Name of the reported metric. Its differences are the gains, so report the logarithm of a
            loss.
        mode: ``"max"`` or ``"min"``.
        interval: Time between two comparisons, in units of ``time_attr``.
        time_attr: Name of the reported time.
        seed: Seed of the design and of the posterior's choices; Ray draws which member is copied.

    Raises:
        InvalidArgumentError: If a number is outside its range.
        InvalidSpaceError: If the space is empty, or has a schedule.
        MissingExtraError: If Ray is missing, or older than 2.50.

    Example::

        scheduler = PopulationScheduler(space, metric="loss", mode="min", interval=5)
        setting = tune.TuneConfig(scheduler=scheduler, num_samples=4)
        tune.Tuner(train, param_space=default, tune_config=setting)
    """

    @advised
    def __init__(
        self,
        space: SearchSpace,
        *,
        metric: str | None = None,
        mode: str | None = None,
        interval: int = 1,
        time_attr: str = "training_iteration",
        seed: int = 0,
    ) -> None:
        require("ray", "2.50", "ray")
        self._space, self._seed = space, check_seed(seed)
        self.belief = PopulationBelief(space, seed=self._seed)
        check(mode in (None, "max", "min"), "mode", "'max' or 'min'", mode)
        super().__init__(
            time_attr=time_attr,
            metric=metric,
            mode=mode,
            perturbation_interval=check_count("interval", interval, minimum=1),
            # Only the names are read: the values come from this class.
            hyperparam_mutations={name: [] for name in space.names},
            synch=True,
        )
        self._round = 0
        # By trial: score and time of its weights before this round, and its report in this round.
        self._before: dict[str, tuple[float, float]] = {}
        self._reported: dict[str, tuple[Tensor, float, float]] = {}
        self._playing: dict[str, Tensor] = {}

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        """Give a trial the configuration that it begins with."""
        number, space = len(self._trial_state), self._space
        default = {name: trial.config[name] for name in space.names if name in trial.config}
        if number == 0 and len(default) == len(space.names):
            chosen = space.canonical(default)
        else:
            # All trials share one Sobol sequence; this one takes the point with its number.
            chosen = space.decode(sobol(space, number + 1, self._seed)[-1])
        trial.config.update(chosen)
        trial.evaluated_params.update(chosen)
        super().on_trial_add(tune_controller, trial)

    def _save_trial_state(
        self, state: Any, time: float, result: dict[str, Any], trial: Any
    ) -> float:
        """Keep the report of a trial."""
        score = float(super()._save_trial_state(state, time, result, trial))
        self._playing[trial.trial_id] = point = self._encode(trial.config)
        self._reported[trial.trial_id] = point, score, time
        return score

    def _quantiles(self) -> tuple[list[Any], list[Any]]:
        """Learn from a round in which all trials have reported; return the worst and the best."""
        self._learn()
        lower, upper = super()._quantiles()
        live = [trial for trial in self._trial_state if not trial.is_finished()]
        scores = {trial: self._trial_state[trial].last_score for trial in live}
        failed = [
            t for t, score in scores.items() if score is not None and not math.isfinite(score)
        ]
        sound = [t for t in live if t not in failed and scores[t] is not None]
        if failed and sound and not upper:
            upper = sound  # Ray returns no best quarter for a single trial
        upper = [trial for trial in upper if trial not in failed]
        lower = [trial for trial in lower if trial not in failed] + (failed if upper else [])
        return lower, upper

    def _learn(self) -> None:
        """Learn the gains of all trials that have reported since the last round."""
        gains: dict[str, float] = {}
        for trial, (_, score, time) in self._reported.items():
            before, then = self._before.get(trial, (0.0, 0.0))  # all begin with equal weights
            gains[trial] = (score - before) / max(time - then, 1)
        finite = [gain for gain in gains.values() if math.isfinite(gain)]
        if finite:
            worst = min(finite) - (max(finite) - min(finite))  # gain of a trial that diverged
            learnt = [gain if math.isfinite(gain) else worst for gain in gains.values()]
            points = torch.stack([point for point, _, _ in self._reported.values()])
            self.belief.learn(self._round, points, learnt)
        for trial, (_, score, time) in self._reported.items():
            if math.isfinite(score):
                self._before[trial] = score, time
        self._reported, self._round = {}, self._round + 1

    def _get_new_config(
        self, trial: Any, trial_to_clone: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the configuration of a trial that continues from the checkpoint of another trial."""
        others = [x for name, x in self._playing.items() if name != trial.trial_id]
        point = self.belief.choose(self._round, torch.stack(others))
        self._playing[trial.trial_id] = point
        self._before[trial.trial_id] = self._before[trial_to_clone.trial_id]
        return {**trial_to_clone.config, **self._space.decode(point)}, {}

    def _encode(self, config: Mapping[str, Any]) -> Tensor:
        tuned = {name: config[name] for name in self._space.names}
        return self._space.encode(self._space.canonical(tuned)).double()
