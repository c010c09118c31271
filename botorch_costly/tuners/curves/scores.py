r"""What to train next, as BOIL has it: configuration and length by improvement of the score, per cost.

A ``CurveGP`` explains the scores of the curves so far, some points of each curve among its data; what is
trained next is the configuration and length of largest expected improvement by unit of cost. What the
paper leaves open:

- Rewards count from the lowest seen, so that no score falls as a training goes on. What lies far off the
  rewards of all other trainings counts as the nearest of these.
- Lengths are shares of each training's own length.
- A training that diverged counts as one that stayed at the lowest reward.
- Where trainings may go on, the cost of a longer one is that of the rest.

References:
    V. Nguyen, S. Schulze, M. A. Osborne. Bayesian optimization for iterative learning. NeurIPS 2020,
    algorithm 1.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.acquisition import LogEIPerCost, best_mean
from botorch_costly.errors import check
from botorch_costly.models import CurveGP, LinearCost, fit_curves
from botorch_costly.numerics.robust import tempered
from botorch_costly.transforms import WEIGHTINGS, CurveCompression
from botorch_costly.tuners.curves.choice import Choice, NewPoints, first_of, opening_of
from botorch_costly.tuners.curves.lengths import SHARES, Ladder
from botorch_costly.tuners.curves.trainings import Training, Trainings

_REFIT = 3  # stretches between refits, for each column of a configuration
_FINEST = 60  # points that a curve is seen at, at most
_MOST_CURVES = 200
_LARGEST = 1e150  # of rewards: differences and sums are finite
_LEAST_REST = 1e-3  # of the cost of a training, by a linear model that may see none
_FIRST_RESTARTS, _RESTARTS = 4, 1


@dataclass(frozen=True)
class Compression:
    """Choose configuration and length by scores of curves, as BOIL does.

    Args:
        weighting: Of the rewards of a curve: ``"sigmoid"``, learnt; ``"log"`` or ``"average"``, given.
        augments: Whether points of each curve join the data.
        softplus: Whether improvement and cost pass a softplus, as published: where improvements are
            small, it goes for cheap stretches alone.

    Raises:
        InvalidArgumentError: If a field has the wrong type or range.
    """

    weighting: str = "sigmoid"
    augments: bool = True
    softplus: bool = False

    def __post_init__(self) -> None:
        check(self.weighting in WEIGHTINGS, "weighting", f"one of {WEIGHTINGS}", self.weighting)
        for name in ("augments", "softplus"):
            check(isinstance(getattr(self, name), bool), name, "a bool", getattr(self, name))


class _Outlook(NamedTuple):
    """What configurations promise, in logarithms."""

    acquisition: LogEIPerCost
    cost: LinearCost

    def of(self, X: Tensor) -> Tensor:
        """Return what the best length of each new configuration (``batch_shape x d``) promises."""
        return self.by_length(X).amax(-1)

    def by_length(self, X: Tensor) -> Tensor:
        """Return what each length of new configurations promises, ``batch_shape x rungs``."""
        shares = X.new_tensor(SHARES).unsqueeze(-1)
        configs = X.unsqueeze(-2)
        shape = (*X.shape[:-1], len(shares))
        rows = torch.cat([configs.expand(*shape, -1), shares.expand(*shape, 1)], -1)
        return self.acquisition(rows.reshape(-1, 1, rows.shape[-1])).reshape(shape)

    def going_on(self, ways: list[tuple[Training, int]], *, resumes: bool) -> list[float]:
        """Return what it promises to train trainings until some iterations."""
        if not ways:
            return []
        until = torch.stack([_row(training, at) for training, at in ways]).unsqueeze(-2)
        done = torch.stack([_row(training, training.done) for training, _ in ways]).unsqueeze(-2)
        values = self.acquisition(until)
        if resumes:
            whole, paid = (self.cost(rows).flatten() for rows in (until, done))
            rest = torch.maximum(whole - paid, _LEAST_REST * whole)
            values = values + whole.log() - rest.log()
        return values.tolist()


def _row(training: Training, iteration: int) -> Tensor:
    """Return ``[configuration, share]``, shape ``(d + 1,)``."""
    share = training.point.new_tensor([iteration / training.length])
    return torch.cat([training.point, share])


class ScoreChooser:
    """Chooses configuration and length by the expected improvement of the score, per cost.

    Args:
        new: Configurations that have not been trained.
        ladder: Where a training may stop.
        generator: Of random draws.
        compression: Of the curves.
        resumes: Whether a training can go on; otherwise it begins anew.
    """

    def __init__(
        self,
        new: NewPoints,
        ladder: Ladder,
        generator: torch.Generator,
        compression: Compression,
        *,
        resumes: bool,
    ) -> None:
        self._new, self._ladder, self._generator = new, ladder, generator
        self._compression, self._resumes = compression, resumes
        self._fitted: dict[str, Tensor] | None = None  # parameters of the latest fit
        self._fitted_at = 0  # stretches told by then

    def choose(self, trainings: Trainings) -> Choice:
        """Return what is trained next, and until when.

        Raises:
            HorizonExceededError: If every configuration has been trained to its end, or is in training.
        """
        opening = opening_of(self._new, trainings)
        if opening is not None:
            return opening if opening.training is not None else self._to_a_length(opening)
        going_on = trainings.going_on
        outlook = self._outlook(self._model(trainings), trainings)
        with torch.no_grad():
            choices = self._going_on(outlook, going_on)
            point = self._new.best(outlook, trainings)
            if point is not None:
                promises = outlook.by_length(point)
                reason = "a new configuration promises most by its cost"
                choice = Choice(point, None, reason, SHARES[int(promises.argmax())])
                choices.append((float(promises.max()), choice))
        return max(choices, key=itemgetter(0))[1] if choices else first_of(going_on)

    def _to_a_length(self, opening: Choice) -> Choice:
        """Return a first look of a length at random, as its configuration is."""
        length = int(torch.randint(len(SHARES), (1,), generator=self._generator))
        return opening._replace(share=SHARES[length])

    def _going_on(self, outlook: _Outlook, trainings: list[Training]) -> list[tuple[float, Choice]]:
        """Return what each longer training promises."""
        ways = [
            (training, until)
            for training in trainings
            for until in self._ladder.rungs(training.length)
            if until > training.done
        ]
        reason = "a longer training promises most by its cost"
        choices = [Choice(t.point, t, reason, until / t.length) for t, until in ways]
        return list(zip(outlook.going_on(ways, resumes=self._resumes), choices, strict=True))

    def _model(self, trainings: Trainings) -> CurveGP:
        """Return the model of all curves so far, fitted anew where that is due."""
        model = self._unfitted(trainings)
        if self._fitted is not None:
            model.load_state_dict(self._fitted, strict=False)
            model.eval()
        if self._compression.augments:
            model = model.augmented()
        if self._fitted is None or self._is_due(trainings):
            restarts = _FIRST_RESTARTS if self._fitted is None else _RESTARTS
            fit_curves(model, restarts=restarts, generator=self._generator)
            parameters = dict(model.named_parameters()).items()
            self._fitted = {name: value.detach().clone() for name, value in parameters}
            self._fitted_at = trainings.stretches
        return model

    def _is_due(self, trainings: Trainings) -> bool:
        every = _REFIT * trainings.points.shape[-1]
        return trainings.stretches < every or trainings.stretches >= self._fitted_at + every

    def _unfitted(self, trainings: Trainings) -> CurveGP:
        lowest, highest = _range_of(trainings)
        seen = [t for t in trainings if t.known or t.broken][-_MOST_CURVES:]
        finest = min(_FINEST, max(training.length for training in seen))
        curves = torch.stack([_resampled(training, finest, lowest) for training in seen])
        points = torch.stack([training.point for training in seen])
        curves = _held(curves.clamp(0, highest - lowest), points)
        compression = CurveCompression(finest, self._compression.weighting).to(points)
        return CurveGP(points, curves, compression=compression)

    def _outlook(self, model: CurveGP, trainings: Trainings) -> _Outlook:
        begun = [training for training in trainings if training.iterations]
        points = torch.stack([t.point for t in begun])
        shares = points.new_tensor([[t.iterations / t.length] for t in begun])
        rows = torch.cat([points, shares], -1)
        costs = torch.tensor([[t.paid] for t in begun], dtype=torch.float64)
        largest = torch.finfo(rows.dtype).max ** 0.5  # sums and products of costs are finite
        cost = LinearCost(rows, costs.clamp(1 / largest, largest).to(rows))
        best = best_mean(model, model.train_inputs[0])
        softplus = self._compression.softplus
        return _Outlook(LogEIPerCost(model, cost, best, as_published=softplus), cost)

    def predict(self, trainings: Trainings, points: Tensor) -> None:
        """Return None: the model predicts scores of curves, which are in no unit of the values."""

    def early_signal(self, share: float) -> float | None:
        """Return the share of all weight that the iterations until then have in the score."""
        if self._fitted is None:
            return None
        compression = CurveCompression(_FINEST, self._compression.weighting).to(self._new.empty)
        names = {name.removeprefix("compression."): v for name, v in self._fitted.items()}
        compression.load_state_dict(names, strict=False)
        weights = compression.weights.detach().flatten()
        return float(weights[: max(1, round(share * _FINEST))].sum() / weights.sum())

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values."""
        fitted = {} if self._fitted is None else dict(self._fitted)
        return {"fitted": fitted, "fitted_at": self._fitted_at, "new": self._new.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        like = self._new.empty
        fitted = {str(name): value.to(like) for name, value in state["fitted"].items()}
        self._new.load_state_dict(state["new"])
        self._fitted, self._fitted_at = fitted or None, int(state["fitted_at"])


def _range_of(trainings: Trainings) -> tuple[float, float]:
    """Return the lowest and the highest reward, without trainings far off all others."""
    curves = [[r for r in training.curve if not math.isnan(r)] for training in trainings]
    ends = torch.tensor([[min(c), max(c)] for c in curves if c], dtype=torch.float64)
    lows, highs = ends.clamp(-_LARGEST, _LARGEST).unbind(-1)
    return float(tempered(lows).min()), float(tempered(highs).max())


def _held(curves: Tensor, like: Tensor) -> Tensor:
    """Return curves in the dtype of a tensor, in another unit where it does not hold their squares."""
    most, largest = torch.finfo(like.dtype).max ** 0.25, float(curves.nan_to_num(0.0).max())
    return (curves if largest <= most else curves * (most / largest)).to(like)


def _resampled(training: Training, finest: int, lowest: float) -> Tensor:
    """Return the rewards above the lowest at equally spaced shares; NaN beyond the present one."""
    curve = torch.full((finest,), math.nan, dtype=torch.float64)
    rewards = torch.tensor([math.nan, *training.curve], dtype=torch.float64) - lowest
    known = torch.tensor([0, *training.known])
    until = int(known[-1]) if training.broken else training.done
    for k in range(1, finest + 1):
        at = k * training.length / finest
        if at < until + 1:  # the point that holds the present iteration is the last
            latest = int(known[known <= at + 1e-9].max())
            curve[k - 1] = rewards[latest]
    if training.known and bool(curve.isnan().all()):
        curve[0] = rewards[training.known[0]]
    return curve.nan_to_num(0.0) if training.broken else curve
