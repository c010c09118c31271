r"""BOIL: configuration and length are chosen together by the expected improvement of a score per cost.

A ``CurveGP`` models the scores of the curves so far. Some points of each curve are among its data: they
are chosen when the curve is new, and stay. The paper leaves details open:

- Rewards are measured from the lowest one seen, so that no score falls as a training continues. Outliers
  are clipped to the range of the rewards of the other trainings.
- Lengths are shares of each training's own length.
- A training that diverged counts as one that stayed at the lowest reward.
- If trainings can be resumed, the cost of a longer one is the cost of the remaining iterations.
- The data are limited: points join while there is room, and the oldest trainings are forgotten.

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
from botorch_costly.calls import advised
from botorch_costly.errors import check
from botorch_costly.models import CurveGP, LinearCost, fit_curves
from botorch_costly.numerics.robust import tempered
from botorch_costly.transforms import WEIGHTINGS, CurveCompression
from botorch_costly.tuners.curves.choice import Choice, NewPoints, first_of, opening_of
from botorch_costly.tuners.curves.lengths import Ladder
from botorch_costly.tuners.curves.score_points import ScorePoints, resampled
from botorch_costly.tuners.curves.trainings import Training, Trainings

_REFIT = 3  # segments between refits, for each column of a configuration
_FINEST = 60  # largest number of points of a resampled curve
_MOST_CURVES = 200
_MOST_ROWS = 600  # of the data; points join while they leave room for the ends of so many curves
_LARGEST = 1e150  # size of rewards: differences and sums are finite
_LEAST_REST = 1e-3  # share of a training's cost: the linear model may predict no remaining cost
_FIRST_RESTARTS, _RESTARTS = 4, 1


@advised
@dataclass(frozen=True)
class Compression:
    """Choose configuration and length by scores of curves, as BOIL does.

    Args:
        weighting: Weights of the rewards of a curve: ``"sigmoid"`` is fitted, ``"log"`` and
            ``"average"`` are fixed.
        augments: Whether points of each new curve join the data, and stay there; otherwise a training
            counts at its latest iteration alone.
        softplus: Whether improvement and cost pass through a softplus, as published. Where improvements
            are small, this rule considers only the cost.

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
    """Logarithm of the expected improvement of the score per cost."""

    acquisition: LogEIPerCost
    cost: LinearCost
    shares: tuple[float, ...]  # of a training, at which it may stop

    def promise(self, X: Tensor) -> Tensor:
        """Return the value of the best length of each new configuration (``batch_shape x d``)."""
        return self.by_length(X).amax(-1)

    def by_length(self, X: Tensor) -> Tensor:
        """Return the value of each length of new configurations, ``batch_shape x shares``."""
        shares = X.new_tensor(self.shares).unsqueeze(-1)
        configs = X.unsqueeze(-2)
        shape = (*X.shape[:-1], len(shares))
        rows = torch.cat([configs.expand(*shape, -1), shares.expand(*shape, 1)], -1)
        return self.acquisition(rows.reshape(-1, 1, rows.shape[-1])).reshape(shape)

    def continued(self, options: list[tuple[Training, int]], *, resumes: bool) -> list[float]:
        """Return the values of pairs of a training and the iteration that it is continued to."""
        if not options:
            return []
        until = torch.stack([_row(training, end) for training, end in options]).unsqueeze(-2)
        done = torch.stack([_row(training, training.done) for training, _ in options]).unsqueeze(-2)
        values = self.acquisition(until)
        if resumes:
            whole, paid = (self.cost(rows).flatten() for rows in (until, done))
            remaining = torch.maximum(whole - paid, _LEAST_REST * whole)
            values = values + whole.log() - remaining.log()
        return values.tolist()


def _row(training: Training, iteration: int) -> Tensor:
    """Return ``[configuration, share]``, shape ``(d + 1,)``."""
    share = training.point.new_tensor([iteration / training.length])
    return torch.cat([training.point, share])


class ScoreChooser:
    """Chooses configuration and length by the expected improvement of the score per cost.

    Args:
        new: Configurations that have not been trained.
        ladder: Iterations at which a training may stop.
        generator: Source of randomness.
        compression: Settings of the scores.
        resumes: Whether a training can be resumed; otherwise it restarts from scratch.
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
        self._fitted_at = 0  # number of segments at the latest fit
        self._data = ScorePoints(stay=compression.augments)

    def choose(self, trainings: Trainings) -> Choice:
        """Return the next training, and the share of it to stop at.

        Raises:
            HorizonExceededError: If every configuration has been trained to its end, or is in training.
        """
        opening = opening_of(self._new, trainings)
        if opening is not None:
            return opening if opening.training is not None else self._with_random_length(opening)
        going_on = trainings.going_on
        outlook = self._outlook(self._model(trainings), trainings)
        with torch.no_grad():
            choices = self._continued(outlook, going_on)
            point = self._new.best(outlook, trainings)
            if point is not None:
                promises = outlook.by_length(point)
                reason = "a new configuration promises most by its cost"
                choice = Choice(point, None, reason, outlook.shares[int(promises.argmax())])
                choices.append((float(promises.max()), choice))
        return max(choices, key=itemgetter(0))[1] if choices else first_of(going_on)

    def _with_random_length(self, opening: Choice) -> Choice:
        shares = self._ladder.shares
        drawn = int(torch.randint(len(shares), (1,), generator=self._generator))
        return opening._replace(share=shares[drawn])

    def _continued(
        self, outlook: _Outlook, trainings: list[Training]
    ) -> list[tuple[float, Choice]]:
        """Return the value of each choice that continues a training, and the choice."""
        options = [
            (training, until)
            for training in trainings
            for until in self._ladder.rungs(training.length)
            if until > training.done
        ]
        reason = "a longer training promises most by its cost"
        choices = [Choice(t.point, t, reason, until / t.length) for t, until in options]
        return list(zip(outlook.continued(options, resumes=self._resumes), choices, strict=True))

    def _model(self, trainings: Trainings) -> CurveGP:
        """Return the model of all curves so far, refitted if that is due."""
        shown = [t for t in trainings if t.known or t.broken][-_MOST_CURVES:]
        seen = self._data.newest(shown, _MOST_ROWS)
        new = self._data.enter_ends(seen)
        model = self._unfitted(seen, trainings)
        if self._fitted is not None:
            model.load_state_dict(self._fitted, strict=False)
            model.eval()
        rows = len(model.marks)
        if self._compression.augments and new and rows <= _MOST_ROWS - _MOST_CURVES:
            model = model.augmented(new)
            self._data.add(seen, model.marks[rows:], model.curves.shape[1])
        if self._fitted is None or self._is_due(trainings):
            restarts = _FIRST_RESTARTS if self._fitted is None else _RESTARTS
            fit_curves(model, restarts=restarts, generator=self._generator)
            parameters = dict(model.named_parameters()).items()
            self._fitted = {name: value.detach().clone() for name, value in parameters}
            self._fitted_at = trainings.segments
        return model

    def _is_due(self, trainings: Trainings) -> bool:
        every = _REFIT * trainings.points.shape[-1]
        return trainings.segments < every or trainings.segments >= self._fitted_at + every

    def _unfitted(self, seen: list[Training], trainings: Trainings) -> CurveGP:
        """Return a model of the data, with the curves of the trainings that are seen."""
        lowest, highest = _range_of(trainings)
        finest = min(_FINEST, max(training.length for training in seen))
        curves = torch.stack([resampled(training, finest, lowest) for training in seen])
        points = torch.stack([training.point for training in seen])
        curves = _in_dtype_of(curves.clamp(0, highest - lowest), points)
        compression = CurveCompression(finest, self._compression.weighting).to(points)
        return CurveGP(points, curves, self._data.marks(seen, curves), compression)

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
        acquisition = LogEIPerCost(model, cost, best, as_published=softplus)
        return _Outlook(acquisition, cost, self._ladder.shares)

    def predict(self, trainings: Trainings, points: Tensor) -> None:
        """Return None: the model predicts scores, which are not in the units of the values."""

    def early_signal(self, share: float) -> float | None:
        """Return the weight in the score of the iterations up to a share of a training."""
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
        return {
            "fitted": fitted,
            "fitted_at": self._fitted_at,
            "data": self._data.to_tensor(),
            "new": self._new.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``; without data, all curves count as new once more."""
        like = self._new.empty
        fitted = {str(name): value.to(like) for name, value in state["fitted"].items()}
        self._new.load_state_dict(state["new"])
        self._fitted, self._fitted_at = fitted or None, int(state["fitted_at"])
        self._data.load(state.get("data"))  # older states have none


def _range_of(trainings: Trainings) -> tuple[float, float]:
    """Return the lowest and the highest reward, without trainings that are outliers."""
    curves = [[r for r in training.curve if not math.isnan(r)] for training in trainings]
    ends = torch.tensor([[min(c), max(c)] for c in curves if c], dtype=torch.float64)
    lows, highs = ends.clamp(-_LARGEST, _LARGEST).unbind(-1)
    return float(tempered(lows).min()), float(tempered(highs).max())


def _in_dtype_of(curves: Tensor, like: Tensor) -> Tensor:
    """Return curves in the dtype of a tensor, rescaled if their squares would overflow."""
    most, largest = torch.finfo(like.dtype).max ** 0.25, float(curves.nan_to_num(0.0).max())
    return (curves if largest <= most else curves * (most / largest)).to(like)
