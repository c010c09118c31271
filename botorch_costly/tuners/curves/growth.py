r"""A belief about the values of trainings, which grow from where they begin.

Values are measured in units of growth (``earlier.unit``). A training that diverged counts as one that
ended at the lowest value seen. The model (``numerics.growth``) averages over how early values grow into
final ones.

Ranks tell trainings apart that differ by 0.001 as well as those that differ by 0.5, which is right where
small differences last, and wrong where half of the trainings never leave the level of chance. Hence there
is this belief beside that of ranks. It also reads earlier tasks, whose strength is averaged over, too.

The promise of a training that stands still is multiplied by the probability that it moves again; if that
is below a half, its value counts as final (``curves.standstill``).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.models.growth import (
    GrowthModel,
    early_correlation,
    fit_growth,
    prior_of_growth,
    thinned,
)
from botorch_costly.numerics.growth import Marks
from botorch_costly.numerics.improvement import log_expected_improvement
from botorch_costly.tuners.curves.ends import Common, Outlook, marks_of
from botorch_costly.tuners.curves.lengths import Ladder
from botorch_costly.tuners.curves.standstill import Movement
from botorch_costly.tuners.curves.trainings import Training, Trainings
from botorch_costly.tuners.earlier.studies import EarlierStudies
from botorch_costly.tuners.earlier.unit import Unit

_MOST_ROWS = 300
_Row = tuple[Tensor, float, float]  # configuration, share, value
_MORE = 1.05  # growth of the number of rows that triggers a refit


class Rows(NamedTuple):
    """Training data of the model, most advanced first."""

    marks: Marks
    targets: Tensor  # in units of growth, shape: (n,)
    best: float  # best latest value of a training, in the same unit
    number: int  # of rows before the oldest were left out


class GrowthOutlook(Outlook):
    """The posterior of final values.

    Args:
        model: The model of all values, pending segments included.
        best: Best latest value of a training, in units of growth.
        bar: What an improvement exceeds under each hypothesis: that value, or the mean of a pending
            segment, shape ``(j, 1)``.
        earlier: Earlier studies, perhaps none.
        common: Costs and movements of the trainings.
    """

    def __init__(
        self, model: GrowthModel, best: float, bar: Tensor, earlier: EarlierStudies, common: Common
    ) -> None:
        super().__init__(common)
        self._model, self._best, self._bar, self._earlier = model, best, bar, earlier

    def log_improvement(self, X: Tensor) -> Tensor:
        """Return the log expected improvements of the ends of configurations ``batch_shape x d``."""
        points = X.reshape(-1, X.shape[-1]).to(self._model.targets)
        ends = self._earlier.marks(points, torch.ones_like(points[:, 0]))
        mean, variance = self._model.mean_and_variance(ends)
        each = log_expected_improvement(mean, variance.sqrt(), self._bar)
        improvement = (each + self._model.log_shares.unsqueeze(-1)).logsumexp(0)
        return improvement.reshape(X.shape[:-1])

    def exceeds(self, training: Training, until: int) -> float:
        """Return the probability that the value after an iteration exceeds the best one, if it moves."""
        share = self._model.targets.new_tensor([until / training.length])
        at = self._earlier.marks(training.point.to(share).unsqueeze(0), share)
        return float(self._model.chance(at, self._best))


class GrowthBelief:
    """The model of values; its parameters are refitted as rewards arrive.

    Args:
        like: Empty tensor, shape ``(0, d)``, on the device of configurations.
        ladder: Iterations whose rewards enter the model, besides the first and the latest one.
        earlier: Earlier studies, perhaps none.
    """

    def __init__(self, like: Tensor, ladder: Ladder, earlier: EarlierStudies) -> None:
        self._ladder, self._earlier, self._fitted_rows = ladder, earlier, 0
        self._theta = prior_of_growth(like.shape[-1], like.double()).mean
        self._log_shares: Tensor | None = None  # of the hypotheses, at the latest fit

    def outlook(self, trainings: Trainings, common: Common) -> GrowthOutlook:
        """Return the posterior of final rewards; refit first if there are many new rows.

        Args:
            trainings: Trainings of which at least one has a reward.
            common: Their costs and movements.
        """
        rows = self.rows(trainings, common.movements)
        differ = bool((rows.targets != rows.targets[0]).any())  # equal targets determine no scales
        if differ and rows.number >= _MORE * self._fitted_rows:
            self._theta = fit_growth(*thinned(rows.marks, rows.targets), self._theta)
            self._fitted_rows, self._log_shares = rows.number, None
        model = GrowthModel.conditioned(rows.marks, rows.targets, self._theta)
        if self._log_shares is None and self._fitted_rows:
            self._log_shares = model.log_shares
        bar = rows.targets.new_full((len(model.log_shares), 1), rows.best)
        pending = [t for t in trainings if t.until is not None]
        if pending:
            model, means = model.with_means(self._marks_of_pending(pending))
            bar = torch.maximum(bar, means.amax(-1, keepdim=True))
        return GrowthOutlook(model, rows.best, bar, self._earlier, common)

    def rows(self, trainings: Trainings, still: Mapping[int, Movement]) -> Rows:
        """Return the configurations, shares and values that enter the model."""
        rewards = trainings.rewards
        firsts = rewards.new_tensor([t.curve[t.known[0] - 1] for t in trainings if t.known])
        lowest = float(rewards.min())
        curves = [[(t.point, *m) for m in self._marks(t, lowest, still)] for t in trainings]
        points, shares, values = zip(*_kept(curves), strict=True)
        x = torch.stack(points).to(self._theta)
        among = rewards.new_tensor(values).clamp_max(trainings.highest)
        different, place = x.unique(dim=0, return_inverse=True)
        unit = Unit.of(firsts, among)
        best = float(unit(rewards.new_tensor(trainings.best_latest)))
        marks = Marks(x, x.new_tensor(shares), self._earlier.means(different)[place])
        return Rows(marks, unit(among).to(x), best, sum(map(len, curves)))

    def _marks(
        self, training: Training, lowest: float, still: Mapping[int, Movement]
    ) -> list[tuple[float, float]]:
        """Return the shares and values of a training that enter the model."""
        marks = marks_of(training, self._ladder)
        if training.number in still and not training.broken:
            final = still[training.number].ever < 0.5
            marks = [(1.0, training.latest)] if final else marks[-1:]
        first = next(iter(training.known), None)
        if first is not None and first < min(self._ladder.rungs(training.length)[0], training.done):
            marks = [(first / training.length, training.curve[first - 1]), *marks]
        return [*marks, (1.0, lowest)] if training.broken else marks

    def _marks_of_pending(self, trainings: list[Training]) -> Marks:
        x = torch.stack([t.point for t in trainings]).to(self._theta)
        shares = [t.until / t.length for t in trainings if t.until is not None]
        return self._earlier.marks(x, x.new_tensor(shares))

    def early_signal(self, share: float) -> float | None:
        """Return the correlation of a value after a share of a training with its final value."""
        if self._log_shares is None:
            return None
        return early_correlation(self._theta, self._log_shares, share)

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values."""
        fit = {"theta": self._theta, "log_shares": self._log_shares}
        return {**fit, "fitted_rows": self._fitted_rows}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        self._theta, shares = state["theta"].to(self._theta), state["log_shares"]
        self._log_shares = None if shares is None else shares.to(self._theta)
        self._fitted_rows = int(state["fitted_rows"])


def _kept(curves: list[list[_Row]]) -> list[_Row]:
    """Return the last row of each training and the most advanced others, most advanced first."""
    rows = [(row, row is curve[-1]) for curve in curves for row in curve]
    number = max(_MOST_ROWS, len(curves))
    order = sorted(range(len(rows)), key=lambda i: (not rows[i][1], -rows[i][0][1]))[:number]
    return sorted((rows[i][0] for i in sorted(order)), key=lambda row: -row[1])
