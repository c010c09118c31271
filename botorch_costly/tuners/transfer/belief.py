"""The target's data, cleaned of outliers, and the Gaussian process of the target alone."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.models.task_fitting import rougher, typical
from botorch_costly.models.transfer import units_of
from botorch_costly.numerics.padded import MomentsAndVJP, bordered
from botorch_costly.numerics.robust import outliers
from botorch_costly.numerics.stationary import Stationary, covariance
from botorch_costly.numerics.units import Units, most_probable

_LARGEST = {torch.float64: 1e150, torch.float32: 1e15}  # size of values: squares are finite
_FURTHEST = {
    torch.float64: 1e100,
    torch.float32: 1e12,
}  # distance of values, in scales of the tasks
_FAR = (
    2.0  # standard deviations by which a target's offset and log scale may differ from the tasks'
)
_BEYOND = 1.0  # plausible distance below the lowest value of a typical task, in scales ...
_ABOVE = 10.0  # ... and above the highest: a better target than any task is welcome
_MOST_LOG = 300.0  # largest logarithm of a scale: the exponential must not overflow
_SEVERAL = 4  # implausible values that suggest that the tasks mislead, or have other units
_GROWN = 1.3  # growth of the number of values that triggers a fit from scratch
_MANY, _OFTEN = 100, 1.05  # values from which on a fit needs some growth of their number


class TargetData(NamedTuple):
    """Evaluations of the target, larger values are better."""

    points: Tensor  # encoded, shape: (n, dim)
    values: Tensor  # shape: (n,)
    failed: Tensor | None = (
        None  # points of evaluations that failed, or are outliers, shape: (f, dim)
    )

    @property
    def evaluations(self) -> int:
        """Number of evaluations, failed ones included."""
        return len(self.values) + len(self.failures)

    @property
    def failures(self) -> Tensor:
        """Points of failed evaluations, shape ``(f, dim)``."""
        return self.points[:0] if self.failed is None else self.failed

    def with_believed(self, points: Tensor, values: Tensor) -> "TargetData":
        """Return the data and predicted values at further points."""
        joined = torch.cat([self.points, points]), torch.cat([self.values, values])
        return TargetData(*joined, self.failed)


class Plausible(NamedTuple):
    """Bounds of plausible values of a target."""

    least: float
    most: float
    good: float  # best value of a typical task


def plausible(tasks: TaskEnsemble) -> Plausible:
    """Return bounds of a target's values, given how much the tasks' units differ."""
    units = units_of(tasks)
    lowest = float(tasks.targets.masked_fill(~tasks.seen, torch.inf).amin(-1).median())
    highest = float(tasks.targets.masked_fill(~tasks.seen, -torch.inf).amax(-1).median())
    scale = math.exp(min(units.log_scale + _FAR * units.log_scale_std, _MOST_LOG))
    apart = _FAR * units.offset_std
    return Plausible(
        units.offset - apart + scale * (lowest - _BEYOND),
        units.offset + apart + scale * (highest + _ABOVE),
        units.offset + math.exp(min(units.log_scale, _MOST_LOG)) * highest,
    )


def target_data_of(points: Tensor, values: Tensor, likely: Plausible) -> TargetData:
    """Return the target's data: low outliers are failures, high ones as good as the best other value.

    A value far below all values of the earlier tasks counts as a failure. Otherwise it would determine
    the scale of the target, and one of the first values would invert the tasks' weights. If several
    values are implausible, and no fewer than the others, the tasks mislead: they count as the lowest
    plausible value. If all of several values are implausible, the target has other units than the tasks,
    and the values stay as they are. A value far below all other values of the target counts as a failure
    in any units.

    A value far above all others, or all that is plausible, may be the optimum, or an error. It counts as
    the highest other value, until several values confirm it.

    Args:
        points: Encoded configurations, ``n x dim``.
        values: Values, NaN for a failed evaluation, shape ``(n,)``.
        likely: Bounds of plausible values.
    """
    finite = ~values.isnan()
    far = torch.zeros_like(finite)
    far[finite.clone()] = outliers(values[finite])
    middle = values[finite].median() if bool(finite.any()) else values.new_zeros(())
    low, high = far & (values < middle), far & (values > middle)
    finite &= ~low
    below, above = finite & (values < likely.least), finite & (values > likely.most)
    valid = finite & ~below
    if bool(_are_several(below, finite)):
        values = values.clamp_min(likely.least) if bool(valid.any()) else values
        valid = finite
    high |= above & ~_are_several(above, finite)
    others = values[valid & ~high]
    highest = others.max() if len(others) else values.new_tensor(likely.good)
    values = torch.where(high, values.clamp_max(highest), values)
    return TargetData(points[valid], values[valid], points[~valid])


def _are_several(implausible: Tensor, finite: Tensor) -> Tensor:
    """Return whether several values are implausible, and no fewer than the others, bool, shape ``()``."""
    count = implausible.sum()
    return (count >= _SEVERAL) & (2 * count >= finite.sum())


def bounded(values: Tensor, tasks: TaskEnsemble | None = None) -> Tensor:
    """Return values clipped so that their squares are finite, also in units of the tasks."""
    largest = _LARGEST[values.dtype]
    values = values.clamp(-largest, largest)
    if tasks is None:
        return values
    middle, reach = tasks.offset.median(), _FURTHEST[values.dtype] * tasks.scale.log().mean().exp()
    return values.clamp(middle - reach, middle + reach)


class TargetGP(NamedTuple):
    """The Gaussian process of the target alone."""

    model: TaskEnsemble  # an ensemble of one task

    @property
    def offset(self) -> Tensor:
        """Offset that standardizes the values, shape ``()``."""
        return self.model.offset[0]

    @property
    def scale(self) -> Tensor:
        """Scale that standardizes the values, shape ``()``."""
        return self.model.scale[0]

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations at points ``m x dim``, in the units of the values."""
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

    def log_evidence(self, data: TargetData, units: Units) -> float:
        """Return the log evidence of the values, with the tasks' prior of offset and scale."""
        model = self.model
        kernel = Stationary(model.kernel, model.lengthscale, model.variance.new_ones(()))
        noise = float(model.noise / model.variance)
        cov = covariance(kernel, data.points, data.points)
        cov = cov + noise * torch.eye(len(cov)).to(cov)
        return float(most_probable(data.values, torch.zeros_like(data.values), cov, units)[0])


class OwnMemory:
    """Fits the target's own Gaussian process, starting from the hyperparameters of the last fit.

    Whenever the number of values has grown by 30 %, the fit also starts from scratch, so that a local
    optimum found with few values is left again. From 100 values on there is a fit only when their number
    has grown by 5 %.

    Args:
        kernel: Name of the kernel of the tasks.
    """

    def __init__(self, kernel: str) -> None:
        self._kernel = kernel
        self._theta: Tensor | None = None  # shape: (1, d + 2)
        self._latest: TaskEnsemble | None = None  # whose factor the next one extends
        self._count = self._anew = 0

    def learn(self, data: TargetData, least_scale: float = 0.0) -> TargetGP:
        """Return the Gaussian process with hyperparameters fitted to the values.

        Args:
            data: Data with at least one value.
            least_scale: Lower bound of the scale of the target's values. The first values may be nearly
                equal, and without a bound no other point would seem worth an evaluation.
        """
        count = len(data.values)
        target = self.believed(data, least_scale)
        is_due = count != self._count if count <= _MANY else count >= _OFTEN * self._count
        self._latest = target.model
        if count == 1 or not (is_due or count < self._count):
            return target
        model = target.model
        if count < _GROWN * self._anew:
            model.refit()
        else:
            default = typical(data.points.shape[-1]).to(data.points).unsqueeze(0)
            former = [] if self._theta is None else [self._theta.to(default)]
            model.fit(starts=[*former, default, rougher(default)])
            self._anew = count
        self._theta, self._count = model.theta.clone(), count
        return target

    def believed(self, data: TargetData, least_scale: float = 0.0) -> TargetGP:
        """Return the Gaussian process of data that may hold predicted values, without a fit."""
        # In single precision a root that grows row by row may lose its last digit.
        exact = data.points.dtype == torch.float64
        many = exact and len(data.values) > _MANY and self._theta is not None
        model = TaskEnsemble(
            [data.points],
            [data.values],
            kernel=self._kernel,
            least_scale=least_scale,
            theta=self._theta,
            root=self._root(data.points) if many else None,
        )
        return TargetGP(model)

    def _root(self, points: Tensor) -> Tensor:
        """Return the inverse root of the covariance of many points, from that of the latest ones.

        It is that of the points of the latest fit, to which all others are added one by one: so it is the
        same to the last bit whether it continues the latest one or begins anew.
        """
        assert self._theta is not None
        theta, latest = self._theta.to(points), self._latest
        if latest is None or not _continues(points, theta, latest):
            first = points[: max(1, min(self._count, len(points)))]
            zeros = torch.zeros_like(first[:, 0])
            latest = TaskEnsemble([first], [zeros], kernel=self._kernel, theta=theta)
        return bordered(self._kernel, latest.root, points, theta[0])

    def state_dict(self) -> dict[str, Any]:
        """Return the hyperparameters and the counts of values at the last fits."""
        theta = None if self._theta is None else self._theta.clone()
        return {"theta": theta, "count": self._count, "anew": self._anew}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        theta, count, anew = state["theta"], int(state["count"]), int(state["anew"])
        self._theta = (
            None if theta is None else theta.clone()
        )  # moved to the device of the next values
        self._count, self._anew, self._latest = count, anew, None


def _continues(points: Tensor, theta: Tensor, latest: TaskEnsemble) -> bool:
    """Return whether points begin with those of a model of some hyperparameters."""
    former = latest.inputs[0]
    begins = len(former) <= len(points) and torch.equal(former, points[: len(former)])
    return begins and torch.equal(theta, latest.theta)


def target_gp(data: TargetData, kernel: str) -> TargetGP:
    """Return the target's Gaussian process, fitted from scratch to at least one value."""
    return OwnMemory(kernel).learn(data)


def believable(log_odds: float) -> float:
    """Return the probability of some log odds."""
    return 1 / (1 + math.exp(-log_odds)) if log_odds > -700 else 0.0
