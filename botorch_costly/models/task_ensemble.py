r"""One Gaussian process for each earlier task, fitted and factorized in one batch.

The values of each task are standardized by their mean and standard deviation. Each task has its own
stationary kernel over the unit cube, with lengthscales, variance and noise. The fit maximizes log
evidence plus log priors: BoTorch's dimension-scaled log-normal prior on lengthscales, and log-normal
priors on variance and noise. Tasks may differ in their numbers of observations; see ``numerics.padded``.
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

_CHUNK_ON_CPU = 2**18  # entries of matrices of a chunk, which fit into the processor's cache
_CHUNK = 2**24  # entries on other devices
_SMALL = 64  # matrices below this size are not grouped by size
_MOST_FITTED = 300  # largest number of observations of a task for fitting
_Result = TypeVar("_Result")


class Moments(NamedTuple):
    """Posterior moments of each task at points."""

    mean: Tensor  # in standardized units, shape: (tasks, m)
    std: Tensor  # shape: (tasks, m)


class _Group(NamedTuple):
    """Tasks with similar numbers of observations, whose matrices are padded to one size."""

    tasks: Tensor  # numbers of the tasks, shape: (b,)
    longest: int  # largest number of observations of a task


class _Chunk(NamedTuple):
    """Tasks of a group that are computed in one batch."""

    tasks: slice | Tensor  # numbers of the tasks
    group: int
    rows: slice  # positions in the group
    longest: int


class TaskEnsemble(NamedStates, nn.Module):
    """Independent Gaussian processes of several tasks.

    References:
        Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
        UAI 2022, section 3.

    Args:
        inputs: Inputs of each task, ``n_i x d`` in the unit cube, all of one floating dtype and device.
        values: Values of each task, ``n_i``, finite.
        kernel: ``"matern52"``, ``"matern32"``, ``"matern12"`` or ``"rbf"``.
        least_scale: Lower bound of ``scale``.
        theta: Logarithms of each task's lengthscales, variance and noise, ``tasks x (d + 2)``; typical
            values if omitted.
        root: Inverse Cholesky factor of a single task, ``n x n``; see ``numerics.padded.bordered``.

    Attributes:
        offset: Mean of each task's values, shape ``(tasks,)``.
        scale: Their standard deviation, at least ``least_scale``; 1 where both are 0. Shape ``(tasks,)``.

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
        root: Tensor | None = None,
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
        received = tuple(theta.shape)
        check(received == shape, "theta", f"shape {shape}", received, InvalidShapeError)
        self.register_buffer("theta", theta.to(rows.x, copy=True))
        if root is None:
            self._factor()
            return
        size = [len(y) for y in values]
        fits = size == list(root.shape[:1]) == list(root.shape[1:])
        check(fits, "root", f"shape {size * 2} of one task", tuple(root.shape), InvalidShapeError)
        self.register_buffer(_name(0), root.unsqueeze(0))
        self.register_buffer("weights", padded.weights_of(root.unsqueeze(0), rows.y))

    @property
    def root(self) -> Tensor:
        """Inverse of the Cholesky factor of the covariance of a single task, ``n x n``."""
        return self.get_buffer(_name(0))[0]

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
        """Fit the hyperparameters.

        Of more than 300 observations of a task, at most 300 evenly spread ones are used.

        Args:
            max_iter: Largest number of evaluations of a search after the first.
            starts: Starts of the searches, each ``tasks x (d + 2)`` like ``theta``. By default the
                present values, and values with shorter lengthscales and less noise.
        """
        if starts is None:
            starts = [self.theta, task_fitting.rougher(self.theta)]
        for chunk in self._chunks():
            rows = self._fitted_rows(chunk)
            theta = [start[chunk.tasks] for start in starts]
            self.theta[chunk.tasks] = task_fitting.fitted(self.kernel, rows, theta, max_iter)
        self._factor()
        return self

    def refit(self) -> Self:
        """Fit the hyperparameters by a few Newton steps from present values near the optimum.

        Of more than 300 observations of a task, at most 300 evenly spread ones are used.
        """
        for chunk in self._chunks():
            rows = self._fitted_rows(chunk)
            theta = task_fitting.refitted(self.kernel, rows, self.theta[chunk.tasks])
            self.theta[chunk.tasks] = theta
        self._factor()
        return self

    def moments(self, X: Tensor) -> Moments:
        """Return posterior means and standard deviations, differentiable in the points.

        Args:
            X: Points, ``m x d``, or ``tasks x m x d`` for different points of each task.

        Returns:
            Moments of shape ``tasks x m``, in the standardized units of each task.
        """
        by_chunk = self._by_chunk(padded.moments, partial(_points, X), X.shape[-2])
        mean, variance = (self._joined(tensors) for tensors in zip(*by_chunk, strict=True))
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
        """Return posterior means, ``tasks x m``, at far less cost than ``moments``."""
        return self._joined(self._by_chunk(padded.means, partial(_points, X), X.shape[-2]))

    def joint(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return each task's joint posterior of the same points, differentiable in the points.

        Args:
            X: Points, ``batch_shape x q x d``.

        Returns:
            Means ``tasks x batch_shape x q`` and covariances ``tasks x batch_shape x q x q``, in the
            standardized units of each task.
        """
        by_chunk = self._by_chunk(padded.joint, lambda tasks: X, X[..., 0].numel())
        mean, cov = (self._joined(tensors) for tensors in zip(*by_chunk, strict=True))
        return mean, cov

    def covariances(self, X: Tensor, others: Tensor) -> Tensor:
        """Return posterior covariances of points ``m x d`` with others ``n x d``, ``tasks x m x n``."""
        function = partial(padded.covariances, others=others)
        return self._joined(self._by_chunk(function, lambda tasks: X, len(X) + len(others)))

    def subset(self, tasks: Sequence[int] | Tensor) -> "TaskEnsemble":
        """Return an ensemble of selected tasks, with their hyperparameters."""
        chosen = torch.as_tensor(tasks, device=self.theta.device)
        subset = object.__new__(type(self))
        nn.Module.__init__(subset)
        subset.kernel = self.kernel
        roots = {_name(group) for group in range(len(self._groups))}
        for name, tensor in self.named_buffers():
            if name not in roots:
                subset.register_buffer(name, tensor[chosen])
        subset._groups = []
        for number, group in enumerate(self._groups):
            tasks, rows = (chosen.unsqueeze(-1) == group.tasks).nonzero(as_tuple=True)
            if len(tasks):
                name = _name(len(subset._groups))
                subset.register_buffer(name, self.get_buffer(_name(number))[rows])
                subset._groups.append(_Group(tasks, group.longest))
        return subset

    def _factor(self) -> None:
        weights = torch.zeros_like(self.targets)
        roots: list[list[Tensor]] = [[] for _ in self._groups]
        for chunk in self._chunks():
            factored = padded.factor(self.kernel, self._rows(chunk), self.theta[chunk.tasks])
            roots[chunk.group].append(factored.inverse_root)
            weights[chunk.tasks, : chunk.longest] = factored.weights
        for group, tensors in enumerate(roots):
            self.register_buffer(_name(group), torch.cat(tensors))
        self.register_buffer("weights", weights)

    def _by_chunk(
        self,
        function: Callable[..., _Result],
        points: Callable[[slice | Tensor], Tensor],
        columns: int,
    ) -> list[_Result]:
        """Return the results of a function of ``numerics.padded`` for all chunks of tasks."""
        chunks = self._chunks(columns)
        return [function(self.kernel, *self._part(s), points(s.tasks)) for s in chunks]

    def _rows(self, chunk: _Chunk) -> Padded:
        """Return the observations of a chunk, with as many rows as the longest task has."""
        rows = self.rows.some(chunk.tasks)
        return Padded(*(tensor[:, : chunk.longest] for tensor in rows))

    def _fitted_rows(self, chunk: _Chunk) -> Padded:
        """Return the evenly spread observations of a chunk that fits use."""
        step = max(1, -(-chunk.longest // _MOST_FITTED))
        return Padded(*(tensor[:, ::step] for tensor in self._rows(chunk)))

    def _part(self, chunk: _Chunk) -> tuple[Padded, Tensor, Factored]:
        """Return the observations, hyperparameters and factor of a chunk."""
        root = self.get_buffer(_name(chunk.group))[chunk.rows]
        factored = Factored(root, self.weights[chunk.tasks, : chunk.longest])
        return self._rows(chunk), self.theta[chunk.tasks], factored

    def _chunks(self, columns: int | None = None) -> list[_Chunk]:
        """Return chunks of tasks whose matrices fit into memory.

        Args:
            columns: Largest number of columns of the matrices; the number of rows if omitted.
        """
        most = _CHUNK_ON_CPU if self.inputs.device.type == "cpu" else _CHUNK
        chunks = []
        for group, (tasks, longest) in enumerate(self._groups):
            width = longest if columns is None else max(1, columns)
            count = max(1, most // (longest * width))
            for first in range(0, len(tasks), count):
                rows = slice(first, first + count)
                selected = rows if len(self._groups) == 1 else tasks[rows]
                chunks.append(_Chunk(selected, group, rows, longest))
        return chunks

    def _joined(self, tensors: Sequence[Tensor]) -> Tensor:
        """Return the tensors of all chunks concatenated, in the order of the tasks."""
        joined = tensors[0] if len(tensors) == 1 else torch.cat(list(tensors))
        if len(self._groups) == 1:
            return joined
        return joined[torch.cat([group.tasks for group in self._groups]).argsort()]


def _check(inputs: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    count = len(inputs)
    check(count > 0, "inputs", "at least one task", count, InvalidShapeError)
    check(len(values) == count, "values", f"{count} tasks", len(values), InvalidShapeError)
    like, columns = inputs[0], inputs[0].shape[-1]
    for number, (x, y) in enumerate(zip(inputs, values, strict=True)):
        name, shape = f"task {number}", (tuple(x.shape), tuple(y.shape))
        fits = x.dim() == 2 and x.shape[-1] == columns and y.shape == x.shape[:1] and len(y) > 0
        expected = f"inputs n x {columns} and n values, n >= 1"
        check(fits, name, expected, shape, InvalidShapeError)
        fits = x.dtype == y.dtype == like.dtype and x.device == y.device == like.device
        expected = f"{like.dtype} on {like.device}, as the first task"
        fits = fits and x.is_floating_point()
        check(fits, name, expected, (x.dtype, y.dtype), InvalidShapeError)
        finite = bool(x.isfinite().all()) and bool(y.isfinite().all())
        check(finite, name, "finite numbers", "NaN or infinite ones")


def standardized(values: Tensor, least: float) -> tuple[Tensor, Tensor]:
    """Return standardized values, and a tensor of their offset and scale.

    Args:
        values: Values of shape ``(n,)``, ``n >= 1``.
        least: Lower bound of the scale, which is 1 if the bound is 0 and the values are constant.
    """
    mean = values.mean()
    std = values.std(correction=0)
    # The computed deviation of constant values is rounding alone.
    rounding = 1e-7 if values.dtype == torch.float32 else 1e-14
    std = torch.where(std > rounding * values.abs().max(), std, 0.0).clamp_min(least)
    std = torch.where(std > 0, std, 1.0)
    return (values - mean) / std, torch.stack([mean, std])


def _name(group: int) -> str:
    """Return the name of the buffer of a group's inverse roots, shape ``(b, longest, longest)``."""
    return f"inverse_root_{group}"


def _grouped(sizes: Sequence[int], device: torch.device) -> list[_Group]:
    """Return groups of tasks whose numbers of observations are within a factor of two.

    In a single group, one large study would pad many small ones to its size. Where this costs at most
    twice as much, all tasks are one group.
    """
    order = sorted(range(len(sizes)), key=lambda task: -sizes[task])
    groups: list[list[int]] = []
    for task in order:
        if not groups or max(sizes[task], _SMALL) * 2 < sizes[groups[-1][0]]:
            groups.append([])
        groups[-1].append(task)
    longest = [sizes[group[0]] for group in groups]
    entries = sum(len(group) * most**2 for group, most in zip(groups, longest, strict=True))
    if len(sizes) * longest[0] ** 2 <= 2 * entries or longest[0] <= _SMALL:
        groups, longest = [order], longest[:1]
    pairs = zip(groups, longest, strict=True)
    return [_Group(torch.tensor(sorted(tasks), device=device), most) for tasks, most in pairs]


def _points(X: Tensor, tasks: slice | Tensor) -> Tensor:
    return X[tasks] if X.dim() == 3 else X
