"""What is believed of the target alone, and of its share in what earlier tasks say."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.models.task_fitting import rougher, typical
from botorch_costly.models.transfer import units_of
from botorch_costly.numerics.padded import MomentsAndVJP
from botorch_costly.numerics.robust import outliers
from botorch_costly.numerics.stationary import Stationary, covariance
from botorch_costly.numerics.units import Units, most_probable

_LARGEST = {torch.float64: 1e150, torch.float32: 1e15}  # of values: squares are finite
_FURTHEST = {torch.float64: 1e100, torch.float32: 1e12}  # in scales of the tasks
_FAR = 2.0  # standard deviations by which offsets and log scales may differ from those of the tasks
_BEYOND = 1.0  # scales below the lowest value of a typical task that are plausible
_MOST_LOG = 300.0  # of a scale: beyond, its exponential overflows
_SEVERAL = 4  # values that are not plausible: the tasks mislead, or have other units
_GROWN = 1.3  # factor of the number of values after which searches begin from nothing


class Told(NamedTuple):
    """What was told, larger is better."""

    points: Tensor  # encoded, shape: (n, dim)
    values: Tensor  # shape: (n,)
    failed: Tensor | None = None  # where evaluations failed, or went astray, shape: (f, dim)

    @property
    def evaluations(self) -> int:
        """Number of evaluations, failed ones included."""
        return len(self.values) + len(self.failures)

    @property
    def failures(self) -> Tensor:
        """Where evaluations failed, shape ``(f, dim)``."""
        return self.points[:0] if self.failed is None else self.failed

    def with_believed(self, points: Tensor, values: Tensor) -> "Told":
        """Return what was told, and what is believed of further points."""
        both = torch.cat([self.points, points]), torch.cat([self.values, values])
        return Told(*both, self.failed)


def plausible(tasks: TaskEnsemble) -> float:
    """Return the lowest value of a target like the tasks, as far as their offsets and scales differ."""
    units = units_of(tasks)
    least = float(tasks.targets.masked_fill(~tasks.seen, torch.inf).amin(-1).median())
    scale = math.exp(min(units.log_scale + _FAR * units.log_scale_std, _MOST_LOG))
    return units.offset - _FAR * units.offset_std + scale * (least - _BEYOND)


def told_of(points: Tensor, values: Tensor, least: float) -> Told:
    """Return what values say, less those that no target has which is like the tasks.

    A value far below whatever earlier tasks showed says that its evaluation went astray, as one that
    failed: it would otherwise set the scale of all that is learnt, and one of the first would turn the
    tasks round. Several such values say that the tasks mislead, as long as they are no fewer than others,
    and count as the lowest plausible one.
    Where not one of several values is plausible, the target has other units than the tasks, and all count
    as they are. A value far below all others counts as a failure in any units; one far above them may be
    what is looked for.

    Args:
        points: Encoded, ``n x dim``.
        values: NaN where an evaluation failed, shape ``(n,)``.
        least: The lowest plausible value.
    """
    finite = ~values.isnan()
    finite[finite.clone()] = ~_far_below(values[finite])
    good = finite & (values >= least)
    low = int((finite & ~good).sum())
    if low >= max(_SEVERAL, int(good.sum())):
        values = values.clamp_min(least) if bool(good.any()) else values
        good = finite
    return Told(points[good], values[good], points[~good])


def _far_below(values: Tensor) -> Tensor:
    return outliers(values) & (values < values.median()) if len(values) else values.isnan()


def bounded(values: Tensor, tasks: TaskEnsemble | None = None) -> Tensor:
    """Return values that can be squared, also in units of the tasks; huge ones count as the bound."""
    largest = _LARGEST[values.dtype]
    values = values.clamp(-largest, largest)
    if tasks is None:
        return values
    middle, reach = tasks.offset.median(), _FURTHEST[values.dtype] * tasks.scale.log().mean().exp()
    return values.clamp(middle - reach, middle + reach)


class Alone(NamedTuple):
    """The Gaussian process of the target alone."""

    model: TaskEnsemble  # of one task

    @property
    def offset(self) -> Tensor:
        """What the values are taken from, shape ``()``."""
        return self.model.offset[0]

    @property
    def scale(self) -> Tensor:
        """What they are divided by, shape ``()``."""
        return self.model.scale[0]

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations of points ``m x dim``, in the units of the values."""
        mean, std = self.model.moments(X)
        return self.offset + self.scale * mean[0], self.scale * std[0]

    def moments_and_vjp(self, columns: int) -> Callable[[Tensor], MomentsAndVJP]:
        """Return a function equal to ``moments`` with an analytic VJP; see ``TaskEnsemble``."""
        model, offset, factor = self.model.moments_and_vjp(columns), self.offset, self.scale

        def ask(X: Tensor) -> MomentsAndVJP:
            mean, std, model_vjp = model(X)

            def vjp(by_mean: Tensor, by_std: Tensor) -> Tensor:
                return model_vjp(factor * by_mean.unsqueeze(0), factor * by_std.unsqueeze(0))

            return MomentsAndVJP(offset + factor * mean[0], factor * std[0], vjp)

        return ask

    def log_evidence(self, told: Told, units: Units) -> float:
        """Return the log evidence of the values, whose units are as uncertain as of the tasks."""
        model = self.model
        one = Stationary(model.kernel, model.lengthscale, model.variance.new_ones(()))
        noise = float(model.noise / model.variance)
        cov = covariance(one, told.points, told.points)
        cov = cov + noise * torch.eye(len(cov)).to(cov)
        return float(most_probable(told.values, torch.zeros_like(told.values), cov, units)[0])


class OwnMemory:
    """Remembers the hyperparameters of the target alone, from which searches after further values begin.

    Whenever the values have grown by three tenths, searches begin from nothing as well: what a few values
    seemed to say does not last.

    Args:
        kernel: Of the tasks.
    """

    def __init__(self, kernel: str) -> None:
        self._kernel = kernel
        self._theta: Tensor | None = None  # shape: (1, d + 2)
        self._count = self._anew = 0

    def learn(self, told: Told, least_scale: float = 0.0) -> Alone:
        """Return the belief, with hyperparameters that are learnt from the values.

        Args:
            told: At least one value.
            least_scale: Standard deviation of all the target's values, at least. Those told first may
                lie side by side, and nothing would be worth a try elsewhere if they were all that is
                possible.
        """
        count = len(told.values)
        target = self.believed(told, least_scale)
        if count in (1, self._count):
            return target
        model = target.model
        if count < _GROWN * self._anew:
            model.refit()
        else:
            begun = typical(told.points.shape[-1]).to(told.points).unsqueeze(0)
            known = [] if self._theta is None else [self._theta]
            model.fit(starts=[*known, begun, rougher(begun)])
            self._anew = count
        self._theta, self._count = model.theta.clone(), count
        return target

    def believed(self, told: Told, least_scale: float = 0.0) -> Alone:
        """Return the belief after values some of which may only be believed: nothing is learnt."""
        points, values = [told.points], [told.values]
        model = TaskEnsemble(
            points, values, kernel=self._kernel, least_scale=least_scale, theta=self._theta
        )
        return Alone(model)

    def state_dict(self) -> dict[str, Any]:
        """Return what is remembered."""
        theta = None if self._theta is None else self._theta.clone()
        return {"theta": theta, "count": self._count, "anew": self._anew}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        theta, count, anew = state["theta"], int(state["count"]), int(state["anew"])
        self._theta = None if theta is None else theta.clone()  # moves with the next values
        self._count, self._anew = count, anew


def alone(told: Told, kernel: str) -> Alone:
    """Return the belief that is learnt from nothing but the values, at least one."""
    return OwnMemory(kernel).learn(told)


def believable(log_odds: float) -> float:
    """Return the probability that has some log odds."""
    return 1 / (1 + math.exp(-log_odds)) if log_odds > -700 else 0.0
