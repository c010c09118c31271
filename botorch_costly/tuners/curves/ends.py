r"""Which training to go on with: by what each is likely to end at, and what that would still cost.

All rewards of all curves are ranked together, and their normal scores are what a Gaussian process
explains. A reward counts at the share of the training that was done by then,

    k((x, s), (x', s')) = k_x(x, x') (1 - eps)^{|log s - log s'| c / 2},

so rewards tell of an end the less, the earlier they are, and how much less is learnt: the rate ``eps``
of the time-varying GP, whose time is ``c log s``. A tenth of the variance of ``k_x`` is each
training's own (a nugget): without it one bad training condemns all that are like it, and a search that
begins badly stays where it is. Next is the training, begun or new, whose expected improvement at the
*end* is largest by the cost of what is left of it; it goes on to its next rung.

A training that diverged counts as one that ended at the lowest reward seen.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.models import LogLinearCost, StreamingGP
from botorch_costly.models.fitting import Hyperparameters, fit
from botorch_costly.models.snapshot import Snapshot
from botorch_costly.numerics.improvement import log_excess
from botorch_costly.numerics.radial import NUGGET
from botorch_costly.numerics.robust import normal_scores
from botorch_costly.numerics.stationary import Stationary
from botorch_costly.tuners.curves.lengths import Ladder
from botorch_costly.tuners.curves.trainings import Training, Trainings

_PACE = 30.0  # c: by the median of the prior, 0.01, a quarter of a training correlates 0.81 with its end
_END = 0.0  # time of it
_GROWTH = 1.05  # factor in rows from which a refit is due
_MOST_ROWS = 800
_LEAST_COST = 1e-300  # products of costs and lengths may be infinite, or 0
_EARLY_FITS = 5  # refits that begin from further values, too


class Rows(NamedTuple):
    """What the belief is made of."""

    inputs: Tensor  # [configuration, time], shape: (n, d + 1)
    targets: Tensor  # normal scores, shape: (n,)
    best: float  # normal score of the best reward at hand


class EndOutlook(NamedTuple):
    """How trainings are likely to end, and at which cost."""

    end: Snapshot
    best: float
    cost: LogLinearCost

    def of(self, X: Tensor, left: Tensor | float = 1.0) -> Tensor:
        """Return the logarithm of the improvement at the end by unit of cost until then.

        Args:
            X: Configurations, ``batch_shape x d``.
            left: Share of the training that is left, of the batch shape.
        """
        mean, variance = self.end.mean_and_variance(X.unsqueeze(-2))
        sd = variance.squeeze(-1).sqrt()
        improvement = sd.log() + log_excess((mean.squeeze(-1) - self.best) / sd)
        rest = left.log() if isinstance(left, Tensor) else math.log(left)
        return improvement - self.cost.logarithm(X) - rest


class EndBelief:
    """What is believed about the ends of trainings; hyperparameters are fitted as rows come in.

    Args:
        like: No configuration, shape ``(0, d)``, of the dtype and device of all of them.
        ladder: Where the rewards of a training count, besides the latest.
    """

    def __init__(self, like: Tensor, ladder: Ladder) -> None:
        self._ladder, self._fits, self._fitted_rows = ladder, 0, 0
        one = like.new_ones(())
        self._values = Hyperparameters(
            0.5 * one.expand(like.shape[-1]), one, 0.05 * one, 0.01 * one
        )

    def outlook(self, trainings: Trainings, generator: torch.Generator) -> EndOutlook:
        """Return what is believed now; refit if many rows are new.

        Args:
            trainings: At least one of which has a reward.
            generator: Of the values that the first refits begin from.
        """
        rows = self.rows(trainings)
        differ = bool((rows.targets != rows.targets[0]).any())  # equal ones say nothing of scales
        if differ and len(rows.inputs) >= _GROWTH * self._fitted_rows:
            self._refit(rows, generator)
        belief = self._conditioned(rows)
        for training in trainings:
            if training.until is not None:
                belief = _believing(belief, training)
        return EndOutlook(belief.snapshot(_END), rows.best, _costs(trainings))

    def rows(self, trainings: Trainings) -> Rows:
        """Return the inputs and normal scores of the rewards that count."""
        like = trainings.points
        rewards = trainings.rewards.to(like.device)  # ranked in float64, whatever is computed in
        lowest = float(rewards.min())
        at = [(t.point, *mark) for t in trainings for mark in self._marks(t, lowest)]
        broken = sum(training.broken for training in trainings)
        among = torch.cat([rewards, rewards.new_full((broken,), lowest)])
        at = sorted(at, key=lambda row: -row[1])[:_MOST_ROWS]  # the latest say most of the end
        points, times, values = zip(*at, strict=True)
        inputs = torch.cat([torch.stack(points), like.new_tensor(times).unsqueeze(-1)], -1)
        latest = among.new_tensor([t.latest for t in trainings if t.known])
        targets = normal_scores(among.new_tensor(values), among)
        return Rows(inputs, targets.to(like), float(normal_scores(latest.max(), among)))

    def _marks(self, training: Training, lowest: float) -> list[tuple[float, float]]:
        """Return times and rewards that count of a training."""
        known, length = training.known, training.length
        wanted = self._ladder.rungs(length) + known[-1:]
        at = {max((k for k in known if k <= w), default=0) for w in wanted if w <= training.done}
        marks = [(_time(k / length), training.curve[k - 1]) for k in sorted(at) if k]
        return [*marks, (_END, lowest)] if training.broken else marks

    def early_signal(self, share: float) -> float | None:
        """Return the correlation of a reward after a share of a training with what it will end at."""
        if not self._fits:
            return None
        _, outputscale, noise, forgetting = (value.double() for value in self._values)
        forgotten = -torch.log1p(-forgetting)
        clear = (outputscale / (outputscale + noise)).sqrt()
        return float(clear * (0.5 * forgotten * _time(share)).exp())

    def _refit(self, rows: Rows, generator: torch.Generator) -> None:
        fitted, report = fit(
            NUGGET,
            rows.inputs,
            rows.targets,
            self._values,
            learn_forgetting=True,
            restarts=1 if self._fits < _EARLY_FITS else 0,
            generator=generator,
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


def _believing(belief: StreamingGP, training: Training) -> StreamingGP:
    """Return the belief as if a pending stretch had come out as expected: its promise has been used."""
    assert training.until is not None
    time = belief.inputs.new_tensor([_time(training.until / training.length)])
    row = torch.cat([training.point, time]).unsqueeze(0)
    mean, _ = belief.mean_and_variance(row)
    return belief.condition_on_observations(row, mean.unsqueeze(-1))


def _costs(trainings: Trainings) -> LogLinearCost:
    """Return what whole trainings cost, by those that have cost something."""
    begun = [training for training in trainings if training.iterations]
    points = torch.stack([t.point for t in begun]).double()
    costs = points.new_tensor([[t.cost_of_whole] for t in begun])
    return LogLinearCost(points, costs.clamp(_LEAST_COST, 1 / _LEAST_COST))
