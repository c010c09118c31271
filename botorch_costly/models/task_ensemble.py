r"""Gaussian processes of earlier tasks, one each: fitted and factored once, all in one batch.

The values of each task are standardized by their own mean and standard deviation, and explained by a
stationary kernel over the unit cube with lengthscales, variance and noise of its own. What is maximized
is log evidence plus log priors: log-normal on the lengthscales (BoTorch's, by dimension), and on variance
and noise. Tasks may have any numbers of observations; see ``numerics.padded``.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Self, TypeVar

import torch
from torch import Tensor, nn

from botorch_costly.errors import InvalidShapeError, check, check_nonnegative
from botorch_costly.models import task_fitting
from botorch_costly.models.promises import NamedStates
from botorch_costly.numerics import padded
from botorch_costly.numerics.padded import Factored, MomentsAndVJP, Padded
from botorch_costly.numerics.radial import check_family

_AT_ONCE = 2**18  # entries of covariance matrices that are held at once: those stay in the cache
_AT_ONCE_ELSEWHERE = 2**24  # than on a CPU
_SMALL = 64  # observations of a task: fewer save nothing
_MOST_FITTED = 300  # observations of a task that hyperparameters are learnt from
_Answer = TypeVar("_Answer")


class Moments(NamedTuple):
    """What each task's posterior says of some points."""

    mean: Tensor  # in standardized units, shape: (tasks, m)
    std: Tensor  # shape: (tasks, m)


class _Group(NamedTuple):
    """Tasks of alike numbers of observations, whose matrices are of one size."""

    tasks: Tensor  # their numbers, shape: (b,)
    longest: int  # most observations of one


class _Chunk(NamedTuple):
    """Tasks of a group that are computed at once."""

    tasks: slice | Tensor  # their numbers
    group: int
    part: slice  # of the group
    longest: int


class TaskEnsemble(NamedStates, nn.Module):
    """Independent Gaussian processes of several tasks.

    References:
        Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
        UAI 2022, section 3.

    Args:
        inputs: Of each task, ``n_i x d`` in the unit cube, floating-point, all of one dtype and device.
        values: Of each task, ``n_i``, finite.
        kernel: ``"matern52"``, ``"matern32"``, ``"matern12"`` or ``"rbf"``.
        least_scale: What values are divided by, at least.
        theta: Logarithms of each task's lengthscales, variance and noise, ``tasks x (d + 2)``, if they
            are known; typical ones if omitted.

    Attributes:
        offset: Mean of each task's values, shape ``(tasks,)``.
        scale: Their standard deviation, but at least ``least_scale``; 1 where both are 0. Shape
            ``(tasks,)``.

    Raises:
        InvalidShapeError: If there is no task, a task has no observation, or shapes do not fit.
        InvalidArgumentError: If a number is not finite.

    Example:
        >>> X = torch.linspace(0, 1, 9, dtype=torch.float64).unsqueeze(-1)
        >>> tasks = TaskEnsemble([X, X[:4]], [X.squeeze(-1).sin(), X[:4].squeeze(-1)]).fit()
        >>> tasks.moments(X).mean.shape
        torch.Size([2, 9])
    """

    inputs: Tensor
    targets: Tensor
    seen: Tensor
    offset: Tensor
    scale: Tensor
    theta: Tensor
    weights: Tensor

    def __init__(
        self,
        inputs: Sequence[Tensor],
        values: Sequence[Tensor],
        *,
        kernel: str = "matern52",
        least_scale: float = 0.0,
        theta: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.kernel = check_family(kernel)
        _check(inputs, values)
        least = check_nonnegative("least_scale", least_scale)
        pairs = [standardized(y, least) for y in values]
        rows = padded.pad([(x, z) for x, (z, _) in zip(inputs, pairs, strict=True)])
        for name, tensor in rows._asdict().items():
            self.register_buffer({"x": "inputs", "y": "targets"}.get(name, name), tensor)
        units = torch.stack([unit for _, unit in pairs])
        self.register_buffer("offset", units[:, 0])
        self.register_buffer("scale", units[:, 1])
        self._groups = _grouped([len(y) for y in values], rows.x.device)
        shape = len(pairs), rows.x.shape[-1] + 2
        if theta is None:
            theta = task_fitting.typical(shape[1] - 2).to(rows.x).repeat(len(pairs), 1)
        check(
            theta.shape == shape, "theta", f"shape {shape}", tuple(theta.shape), InvalidShapeError
        )
        self.register_buffer("theta", theta.to(rows.x, copy=True))
        self._factor()

    @property
    def count(self) -> int:
        """Number of tasks."""
        return len(self.targets)

    @property
    def entries(self) -> int:
        """Number of entries of all covariance matrices."""
        return sum(len(tasks) * longest**2 for tasks, longest in self._groups)

    @property
    def rows(self) -> Padded:
        """The observations, standardized."""
        return Padded(self.inputs, self.targets, self.seen)

    @property
    def lengthscale(self) -> Tensor:
        """Lengthscales of each task, shape ``(tasks, d)``."""
        return self.theta[:, :-2].exp()

    @property
    def variance(self) -> Tensor:
        """Prior variance of each task, in standardized units, shape ``(tasks,)``."""
        return self.theta[:, -2].exp()

    @property
    def noise(self) -> Tensor:
        """Noise variance of each task, in standardized units, shape ``(tasks,)``."""
        return self.theta[:, -1].exp()

    def fit(self, *, max_iter: int = 60, starts: Sequence[Tensor] | None = None) -> Self:
        """Learn the hyperparameters, and factor.

        Of a task with more than 300 observations, 300 evenly spread ones are learnt from.

        Args:
            max_iter: Most evaluations of a search after the first.
            starts: Where searches begin, each ``tasks x (d + 2)`` as ``theta``. If omitted, one begins at
                the present values, and one with shorter lengthscales and less noise.
        """
        if starts is None:
            starts = [self.theta, task_fitting.rougher(self.theta)]
        for some in self._chunks():
            rows = self._rows(some)
            step = max(1, -(-some.longest // _MOST_FITTED))
            rows = Padded(*(part[:, ::step] for part in rows))
            begun = [start[some.tasks] for start in starts]
            self.theta[some.tasks] = task_fitting.fitted(self.kernel, rows, begun, max_iter)
        self._factor()
        return self

    def refit(self) -> Self:
        """Learn the hyperparameters from present ones that are likely near, and factor.

        What little was learnt before a few further observations takes a few evaluations to learn anew.
        """
        for some in self._chunks():
            theta = task_fitting.refitted(self.kernel, self._rows(some), self.theta[some.tasks])
            self.theta[some.tasks] = theta
        self._factor()
        return self

    def moments(self, X: Tensor) -> Moments:
        """Return posterior means and standard deviations, differentiable in the points.

        Args:
            X: Points, ``m x d``; or ``tasks x m x d``, other points for each task.

        Returns:
            Each of shape ``tasks x m``, in the standardized units of each task.
        """
        parts = self._asked(padded.moments, partial(_points, X), X.shape[-2])
        mean, variance = (self._joined(part) for part in zip(*parts, strict=True))
        return Moments(mean, variance.sqrt())

    def moments_and_vjp(self, columns: int) -> Callable[[Tensor], MomentsAndVJP]:
        """Return what does as ``moments``, with slopes in closed form and no graph.

        It maps points ``m x d`` to moments ``tasks x m``, whose slopes come back as those by the points.
        What does not depend on the points is worked out once.

        Args:
            columns: About how many points will be asked about at once.
        """
        chunks = self._chunks(columns)
        asks = [padded.moments_and_vjp(self.kernel, *self._part(s)) for s in chunks]

        def ask(X: Tensor) -> MomentsAndVJP:
            parts = [one(X) for one in asks]
            mean = self._joined([part.mean for part in parts])
            variance = self._joined([part.spread for part in parts])
            std = variance.sqrt()

            def vjp(by_mean: Tensor, by_std: Tensor) -> Tensor:
                by_variance = 0.5 * by_std / std
                pairs = zip(parts, chunks, strict=True)
                slopes = [part.vjp(by_mean[s.tasks], by_variance[s.tasks]) for part, s in pairs]
                return slopes[0] if len(slopes) == 1 else torch.stack(slopes).sum(0)

            return MomentsAndVJP(mean, std, vjp)

        return ask

    def means(self, X: Tensor) -> Tensor:
        """Return posterior means alone, which cost far less, ``tasks x m``."""
        return self._joined(self._asked(padded.means, partial(_points, X), X.shape[-2]))

    def joint(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return joint posteriors of the same points, differentiable in the points.

        Args:
            X: Points, ``batch_shape x q x d``.

        Returns:
            Means ``tasks x batch_shape x q`` and covariances ``tasks x batch_shape x q x q``, in the
            standardized units of each task.
        """
        parts = self._asked(padded.joint, lambda tasks: X, X[..., 0].numel())
        mean, cov = (self._joined(part) for part in zip(*parts, strict=True))
        return mean, cov

    def covariances(self, X: Tensor, others: Tensor) -> Tensor:
        """Return posterior covariances of points ``m x d`` with others ``n x d``, ``tasks x m x n``."""
        question = partial(padded.covariances, others=others)
        return self._joined(self._asked(question, lambda tasks: X, len(X) + len(others)))

    def subset(self, tasks: Sequence[int] | Tensor) -> "TaskEnsemble":
        """Return an ensemble of some of the tasks, fitted as they are."""
        chosen = torch.as_tensor(tasks, device=self.theta.device)
        part = object.__new__(type(self))
        nn.Module.__init__(part)
        part.kernel = self.kernel
        apart = {_name(k) for k in range(len(self._groups))}
        for name, tensor in self.named_buffers():
            if name not in apart:
                part.register_buffer(name, tensor[chosen])
        part._groups = []
        for number, group in enumerate(self._groups):
            place, among = (chosen.unsqueeze(-1) == group.tasks).nonzero(as_tuple=True)
            if len(place):
                name = _name(len(part._groups))
                part.register_buffer(name, self.get_buffer(_name(number))[among])
                part._groups.append(_Group(place, group.longest))
        return part

    def _factor(self) -> None:
        weights = torch.zeros_like(self.targets)
        roots: list[list[Tensor]] = [[] for _ in self._groups]
        for some in self._chunks():
            known = padded.factor(self.kernel, self._rows(some), self.theta[some.tasks])
            roots[some.group].append(known.inverse_root)
            weights[some.tasks, : some.longest] = known.weights
        for number, parts in enumerate(roots):
            self.register_buffer(_name(number), torch.cat(parts))
        self.register_buffer("weights", weights)

    def _asked(
        self,
        question: Callable[..., _Answer],
        points: Callable[[slice | Tensor], Tensor],
        columns: int,
    ) -> list[_Answer]:
        """Return what a function of ``numerics.padded`` says of points, run of tasks by run of tasks."""
        chunks = self._chunks(columns)
        return [question(self.kernel, *self._part(s), points(s.tasks)) for s in chunks]

    def _rows(self, some: _Chunk) -> Padded:
        """Return the observations of some of the tasks, as many rows as the longest has."""
        chosen = self.rows.some(some.tasks)
        return Padded(*(part[:, : some.longest] for part in chosen))

    def _part(self, some: _Chunk) -> tuple[Padded, Tensor, Factored]:
        """Return what ``numerics.padded`` asks for of some of the tasks."""
        root = self.get_buffer(_name(some.group))[some.part]
        known = Factored(root, self.weights[some.tasks, : some.longest])
        return self._rows(some), self.theta[some.tasks], known

    def _chunks(self, columns: int | None = None) -> list[_Chunk]:
        """Return runs of tasks whose matrices fit into memory at once.

        Args:
            columns: Of the matrices, at most; as many as rows if omitted.
        """
        most = _AT_ONCE if self.inputs.device.type == "cpu" else _AT_ONCE_ELSEWHERE
        chunks = []
        for number, (tasks, longest) in enumerate(self._groups):
            wide = longest if columns is None else max(1, columns)
            each = max(1, most // (longest * wide))
            for first in range(0, len(tasks), each):
                part = slice(first, first + each)
                some = part if len(self._groups) == 1 else tasks[part]
                chunks.append(_Chunk(some, number, part, longest))
        return chunks

    def _joined(self, parts: Sequence[Tensor]) -> Tensor:
        """Return parts of runs of tasks in one tensor, in the order of the tasks."""
        both = parts[0] if len(parts) == 1 else torch.cat(list(parts))
        if len(self._groups) == 1:
            return both
        return both[torch.cat([group.tasks for group in self._groups]).argsort()]


def _check(inputs: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    many = len(inputs)
    check(many > 0, "inputs", "at least one task", many, InvalidShapeError)
    check(len(values) == many, "values", f"{many} tasks", len(values), InvalidShapeError)
    like, columns = inputs[0], inputs[0].shape[-1]
    for number, (x, y) in enumerate(zip(inputs, values, strict=True)):
        name, shape = f"task {number}", (tuple(x.shape), tuple(y.shape))
        fits = x.dim() == 2 and x.shape[-1] == columns and y.shape == x.shape[:1] and len(y) > 0
        expected = f"inputs n x {columns} and n values, n >= 1"
        check(fits, name, expected, shape, InvalidShapeError)
        alike = x.dtype == y.dtype == like.dtype and x.device == y.device == like.device
        kind = f"{like.dtype} on {like.device}, as the first task"
        check(alike and x.is_floating_point(), name, kind, (x.dtype, y.dtype), InvalidShapeError)
        finite = bool(x.isfinite().all()) and bool(y.isfinite().all())
        check(finite, name, "finite numbers", "NaN or infinite ones")


def standardized(values: Tensor, least: float) -> tuple[Tensor, Tensor]:
    """Return standardized values, and what was taken off and divided by.

    Args:
        values: At least one, shape ``(n,)``.
        least: What they are divided by, at least; by 1 where it is 0 and they are constant.
    """
    mean = values.mean()
    std = values.std(correction=0)
    # Of constant values only rounding is left.
    rounding = 1e-7 if values.dtype == torch.float32 else 1e-14
    std = torch.where(std > rounding * values.abs().max(), std, 0.0).clamp_min(least)
    std = torch.where(std > 0, std, 1.0)
    return (values - mean) / std, torch.stack([mean, std])


def _name(group: int) -> str:
    """Return the name of the buffer of a group's inverse roots, shape ``(b, longest, longest)``."""
    return f"inverse_root_{group}"


def _grouped(sizes: Sequence[int], device: torch.device) -> list[_Group]:
    """Return groups of tasks whose numbers of observations are within a factor of two.

    One large study beside many small ones would make all as large as itself, in time and in memory.
    Where that costs no more than twice as much, all are one group.
    """
    order = sorted(range(len(sizes)), key=lambda task: -sizes[task])
    groups: list[list[int]] = []
    for task in order:
        if not groups or max(sizes[task], _SMALL) * 2 < sizes[groups[-1][0]]:
            groups.append([])
        groups[-1].append(task)
    longest = [sizes[group[0]] for group in groups]
    apart = sum(len(group) * most**2 for group, most in zip(groups, longest, strict=True))
    if len(sizes) * longest[0] ** 2 <= 2 * apart or longest[0] <= _SMALL:
        groups, longest = [order], longest[:1]
    pairs = zip(groups, longest, strict=True)
    return [_Group(torch.tensor(sorted(tasks), device=device), most) for tasks, most in pairs]


def _points(X: Tensor, tasks: slice | Tensor) -> Tensor:
    return X[tasks] if X.dim() == 3 else X
