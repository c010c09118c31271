r"""A belief about the ranks of final rewards.

All rewards of all curves are ranked together, and a Gaussian process models their normal scores. Its
inputs are a configuration ``x`` and the share ``s`` of the training that was done,

    k((x, s), (x', s')) = k_x(x, x') (1 - eps)^{|log s - log s'| c / 2}.

Early rewards are less correlated with the end of a training. How much less is fitted: it is the rate
``eps`` of the time-varying GP with time ``c log s``. A tenth of the variance of ``k_x`` is a nugget,
independent for each training: without it one bad training would rule out all similar configurations,
and a search with a bad start would not recover.

A training that diverged counts as one that ended at the lowest reward seen.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.models import StreamingGP
from botorch_costly.models.fitting import Hyperparameters, fit
from botorch_costly.models.snapshot import Snapshot
from botorch_costly.numerics.improvement import log_expected_improvement
from botorch_costly.numerics.radial import NUGGET
from botorch_costly.numerics.robust import normal_scores
from botorch_costly.numerics.stationary import Stationary
from botorch_costly.tuners.curves.ends import Common, Outlook, marks_of
from botorch_costly.tuners.curves.lengths import Ladder
from botorch_costly.tuners.curves.trainings import Training, Trainings

# c: at the prior median eps = 0.01, a quarter of a training has a correlation of 0.81 with its end.
_PACE = 30.0
_END = 0.0  # time of the end of a training
_GROWTH = 1.05  # growth of the number of rows that triggers a refit
_MOST_ROWS = 800
_EARLY_FITS = 5  # refits with additional random restarts


class Rows(NamedTuple):
    """Training data of the Gaussian process."""

    inputs: Tensor  # [configuration, time], shape: (n, d + 1)
    targets: Tensor  # normal scores, shape: (n,)
    best: float  # normal score of the best latest reward of a training


class RankOutlook(Outlook):
    """The posterior of normal scores of final rewards.

    Args:
        model: The model of all normal scores, pending segments included.
        best: Normal score of the best latest reward of a training.
        common: Costs and movements of the trainings.
    """

    def __init__(self, model: StreamingGP, best: float, common: Common) -> None:
        super().__init__(common)
        self._model, self._best = model, best
        self.end: Snapshot = model.snapshot(_END)

    def log_improvement(self, X: Tensor) -> Tensor:
        """Return the log expected improvements of the ends of configurations ``batch_shape x d``."""
        mean, variance = self.end.mean_and_variance(X.unsqueeze(-2))
        return log_expected_improvement(mean.squeeze(-1), variance.squeeze(-1).sqrt(), self._best)

    def exceeds(self, training: Training, until: int) -> float:
        """Return the probability that the value after an iteration exceeds the best one, if it moves."""
        time = training.point.new_tensor([_time(until / training.length)])
        mean, variance = self._model.mean_and_variance(torch.cat([training.point, time])[None])
        sd = (variance.squeeze() + self._model.noise).sqrt()
        return float(torch.special.ndtr((mean.squeeze() - self._best) / sd))


class RankBelief:
    """The Gaussian process of final rewards; hyperparameters are refitted as rewards arrive.

    Args:
        like: Empty tensor, shape ``(0, d)``, with the dtype and device of configurations.
        ladder: Iterations whose rewards enter the model, besides the latest reward.
        generator: Source of the random restarts of the first refits.
    """

    def __init__(self, like: Tensor, ladder: Ladder, generator: torch.Generator) -> None:
        self._ladder, self._generator = ladder, generator
        self._fits = self._fitted_rows = 0
        unit = like.new_ones(())
        lengthscale = 0.5 * unit.expand(like.shape[-1])
        self._values = Hyperparameters(lengthscale, unit, 0.05 * unit, 0.01 * unit)

    def outlook(self, trainings: Trainings, common: Common) -> RankOutlook:
        """Return the posterior of final rewards; refit first if there are many new rows.

        Args:
            trainings: Trainings of which at least one has a reward.
            common: Their costs and movements.
        """
        rows = self.rows(trainings)
        differ = bool((rows.targets != rows.targets[0]).any())  # equal targets determine no scales
        if differ and len(rows.inputs) >= _GROWTH * self._fitted_rows:
            self._refit(rows)
        belief = self._conditioned(rows)
        for training in trainings:
            if training.until is not None:
                belief = _with_pending(belief, training)
        return RankOutlook(belief, rows.best, common)

    def rows(self, trainings: Trainings) -> Rows:
        """Return the inputs and normal scores of the rewards that enter the model."""
        like = trainings.points
        rewards = trainings.rewards.to(like.device)  # ranks are computed in float64
        lowest = float(rewards.min())
        rows = [(t.point, *mark) for t in trainings for mark in self._marks(t, lowest)]
        among = torch.cat([rewards, rewards.new_full((trainings.broken,), lowest)])
        # The latest rewards are the most informative about the end.
        rows = sorted(rows, key=lambda row: -row[1])[:_MOST_ROWS]
        points, times, values = zip(*rows, strict=True)
        inputs = torch.cat([torch.stack(points), like.new_tensor(times).unsqueeze(-1)], -1)
        targets = normal_scores(among.new_tensor(values).clamp_max(trainings.highest), among)
        best = normal_scores(among.new_tensor(trainings.best_latest), among)
        return Rows(inputs, targets.to(like), float(best))

    def _marks(self, training: Training, lowest: float) -> list[tuple[float, float]]:
        """Return the times and rewards of a training that enter the model."""
        pairs = [(_time(share), value) for share, value in marks_of(training, self._ladder)]
        return [*pairs, (_END, lowest)] if training.broken else pairs

    def _refit(self, rows: Rows) -> None:
        fitted, report = fit(
            NUGGET,
            rows.inputs,
            rows.targets,
            self._values,
            learn_forgetting=True,
            restarts=1 if self._fits < _EARLY_FITS else 0,
            generator=self._generator,
        )
        if bool(report.after.isfinite()):
            self._values = fitted
        self._fits, self._fitted_rows = self._fits + 1, len(rows.inputs)

    def _conditioned(self, rows: Rows) -> StreamingGP:
        lengthscale, outputscale, noise, forgetting = self._values
        kernel = Stationary(NUGGET, lengthscale, outputscale)
        empty = StreamingGP(kernel, float(forgetting), float(noise), maximum_rows=2 * _MOST_ROWS)
        return empty.condition_on_observations(rows.inputs, rows.targets.unsqueeze(-1))

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values."""
        counts = {"fits": self._fits, "fitted_rows": self._fitted_rows}
        return {**self._values._asdict(), **counts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        values = [state[name].to(self._values.noise) for name in Hyperparameters._fields]
        self._values = Hyperparameters(*values)
        self._fits, self._fitted_rows = state["fits"], state["fitted_rows"]


def _time(share: float) -> float:
    return _PACE * math.log(share)


def _with_pending(belief: StreamingGP, training: Training) -> StreamingGP:
    """Return the belief conditioned on a pending segment, with its mean as the reward."""
    assert training.until is not None
    time = belief.inputs.new_tensor([_time(training.until / training.length)])
    row = torch.cat([training.point, time]).unsqueeze(0)
    mean, _ = belief.mean_and_variance(row)
    return belief.condition_on_observations(row, mean.unsqueeze(-1))
