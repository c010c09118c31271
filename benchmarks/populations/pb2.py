"""Ray's PB2, asked directly: its own object decides, and only the cluster around it is a stand-in.

``PB2.on_trial_result`` is told what each member reports, in its synchronous mode; it orders the members,
has the worst quarter copy one of the best, and fits its Gaussian process for their configurations. Trials
and controller are the few attributes that it reads. Configurations are columns of the unit cube, so
that logarithmic hyperparameters are searched in the logarithm, which PB2 alone would not do; scores
are minus the log loss, whose differences are the gains of our tuner.
"""

import math
import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.populations.play import Plan, Size
from benchmarks.suite.protocol import OnlineProblem

_WORST = 1e3  # a loss that is reported in place of an infinite one, which no Gaussian process fits


class _Weights(NamedTuple):
    """A checkpoint: whose weights they are."""

    member: int


class _Trial:
    """What PB2 reads of a trial; paused, as all are when they are compared."""

    def __init__(self, member: int, config: dict[str, float]) -> None:
        self.trial_id, self.config, self.status = f"member{member}", config, "PAUSED"
        self.experiment_tag, self.checkpoint = self.trial_id, _Weights(member)
        self.evaluated_params: dict[str, Any] = {}
        self.temporary_state = SimpleNamespace(saving_to=None)
        kept = SimpleNamespace(num_to_keep=None)
        manager = SimpleNamespace(checkpoint_config=kept, _latest_checkpoint_result=None)
        self.run_metadata = SimpleNamespace(checkpoint_manager=manager)

    def __str__(self) -> str:
        return self.trial_id

    def is_finished(self) -> bool:
        """All members train to the end."""
        return False

    def set_config(self, config: dict[str, float]) -> None:
        """Take over a configuration."""
        self.config = config

    def set_experiment_tag(self, tag: str) -> None:
        """Take over a name."""
        self.experiment_tag = tag


class PB2Decider:
    """A population under ``ray.tune.schedulers.pb2.PB2`` as it comes, but synchronous."""

    def __init__(self, problem: OnlineProblem, seed: int, size: Size) -> None:
        from ray.tune.schedulers.pb2 import PB2  # an extra of this benchmark alone

        # It draws from the global generators.
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        self._space, self._names = problem.space, [f"x{i}" for i in range(problem.space.dim)]
        self._scheduler = PB2(
            time_attr="time",
            metric="score",
            mode="max",
            perturbation_interval=1,
            hyperparam_bounds={name: [0.0, 1.0] for name in self._names},
            log_config=False,
            synch=True,
        )
        generator = torch.Generator().manual_seed(seed)
        others = problem.space.sample(size.members - 1, generator)
        points = [problem.space.encode(problem.default).double(), *others]
        self._trials = [
            _Trial(i, dict(zip(self._names, x.tolist(), strict=True))) for i, x in enumerate(points)
        ]
        self._controller: Any = SimpleNamespace(
            search_alg=None,
            get_trials=lambda: self._trials,
            get_live_trials=lambda: self._trials,
        )
        for trial in self._trials:
            self._scheduler.on_trial_add(self._controller, trial)
        self._time, self._origins = 0, list(range(size.members))

    def plan(self) -> Plan:
        """Return the configurations that the trials have."""
        rows = [[trial.config[name] for name in self._names] for trial in self._trials]
        points = self._space.round(torch.tensor(rows, dtype=torch.float64).clamp(0, 1))
        return Plan(
            [self._space.decode(x) for x in points], self._origins, [True for _ in self._trials]
        )

    def hear(self, losses: Sequence[float | None]) -> None:
        """Report a score for each member; the last report makes PB2 decide."""
        self._time += 1
        for member, trial in enumerate(self._trials):
            trial.checkpoint = _Weights(member)
            trial.run_metadata.checkpoint_manager._latest_checkpoint_result = None
        for trial, loss in zip(self._trials, losses, strict=True):
            finite = loss is not None and math.isfinite(loss)
            score = -math.log(loss if finite and loss else _WORST)
            result = {"time": self._time, "score": score, "training_iteration": self._time}
            self._scheduler.on_trial_result(self._controller, trial, result)
        latest = [t.run_metadata.checkpoint_manager._latest_checkpoint_result for t in self._trials]
        self._origins = [
            m if one is None else one.checkpoint.member for m, one in enumerate(latest)
        ]
