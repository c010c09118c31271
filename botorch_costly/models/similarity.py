"""How much tasks resemble each other, learnt from each in turn as the target; and how much a target does.

A target may resemble the tasks less than they resemble each other. Its own values say so, and move the
logarithms of the similarity's numbers from what the tasks say: by about 1, as a normal prior has it.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.models.similarity_of_target import (
    Target,
    log_evidence,
    target_of,
    with_information,
)
from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.models.transfer import (
    Features,
    Similarity,
    features,
    prior_covariance,
    prior_mean,
    units_of,
)
from botorch_costly.numerics.expansion import Quadratic
from botorch_costly.optim.lbfgs import minimize_batch
from botorch_costly.optim.newton import climb_by_newton
from botorch_costly.optim.smooth import by_autograd

_MOST_TARGETS, _MOST_ROWS = 48, 64  # tasks that are targets, and observations of each
_STEPS, _SLOPE = 80, 1e-2
_KNOWN = {  # mean and standard deviation of the logarithm: what two tables of 25 tasks agree on
    "level": (math.log(0.87), 0.5),
    "spread": (math.log(0.4), 1.0),
    "own": (math.log(0.4), 1.0),
    "noise": (math.log(0.05), 1.0),
}
_BOX = math.log(1e-4), math.log(1e2)
_MOVED = 1.0  # standard deviation of the logarithms of a target's similarity from that of the tasks
_FURTHEST = 3.0  # in such standard deviations
_STEPS_OF_TARGET, _SLOPE_OF_TARGET = 15, 5e-2  # after each evaluation: more changes no choice
_NEWTON, _NEAR = 8, 8e-3  # most steps, and the last one, in widths
_FEWEST = 2  # values of a target that say something of its similarity


class _Held(NamedTuple):
    """Tasks as targets of all others."""

    x: Tensor  # shape: (h, n, d)
    y: Tensor  # shape: (h, n)
    seen: Tensor  # bool, shape: (h, n)
    means: Tensor  # of all other tasks, shape: (h, n, tasks - 1)
    variance: Tensor  # the sum of theirs, shape: (h, n)


def typical_similarity(tasks: TaskEnsemble) -> Similarity:
    """Return what is believed of any tasks, as of a single one, which has no other."""
    numbers = {name: tasks.theta.new_tensor(mean).exp() for name, (mean, _) in _KNOWN.items()}
    return Similarity(**numbers, lengthscale=tasks.lengthscale.log().mean(0).exp())


def learn_similarity(tasks: TaskEnsemble) -> Similarity:
    """Return the similarity under which each task is most probable after all others.

    Of more than 48 tasks, and more than 64 observations of a task, as many evenly spread ones are asked.

    Args:
        tasks: Fitted.
    """
    start = typical_similarity(tasks)
    if tasks.count < 2:
        return start
    held = _held_out(tasks)
    mean, std = _prior_of_logs(start)

    def loss(theta: Tensor) -> Tensor:
        logs = theta.reshape(-1, theta.shape[-1])
        values = [_log_evidence(tasks, held, _similarity(one)) for one in logs]
        known = -0.5 * ((logs - mean) / std).square().sum(-1)
        return -(torch.stack(values) + known).reshape(theta.shape[:-1])

    first = mean.clone().reshape(1, -1)
    box = torch.tensor(_BOX, dtype=mean.dtype, device=mean.device)
    end = minimize_batch(
        by_autograd(loss),
        first,
        box.unsqueeze(-1).expand(2, len(mean)),
        max_iter=_STEPS,
        gradient_tolerance=_SLOPE,
    )
    return Similarity(*(part.to(tasks.theta) for part in _similarity(end.point[0])))


def adapt_similarity(
    similarity: Similarity,
    tasks: TaskEnsemble,
    X: Tensor,
    Y: Tensor,
    known: Features | None = None,
    *,
    start: Similarity | None = None,
) -> Similarity:
    """Return the similarity that is most probable after a target's values as well.

    Below two values it is the one given.

    Args:
        similarity: Of the tasks.
        tasks: Fitted.
        X: Inputs of the target, ``n x d``.
        Y: Its values, ``n x 1``, in the units of the tasks' values.
        known: What ``features`` said of its inputs, if it is at hand.
        start: Where the search begins, as after fewer values; ``similarity`` if omitted.
    """
    if len(X) < _FEWEST:
        return similarity
    known = features(tasks, X) if known is None else known
    target = target_of(X, Y.squeeze(-1), known, tasks.kernel, units_of(tasks))
    mean = _logs(similarity)
    first = (torch.zeros_like(mean) if start is None else _logs(start) - mean) / _MOVED
    box = mean.new_tensor([-_FURTHEST, _FURTHEST]).unsqueeze(-1).expand(2, len(mean))
    moved = _most_probable(target, mean, first.unsqueeze(0), box)[0].nan_to_num(0.0)
    found = _similarity(mean + _MOVED * moved)
    return Similarity(*(part.to(tasks.theta) for part in found))


@torch.no_grad()
def _most_probable(target: Target, mean: Tensor, start: Tensor, box: Tensor) -> Tensor:
    """Return by how much the logarithms move from their mean, ``1 x p``, in a few Newton steps.

    The curvature is what the values are expected to say. Where it leads nowhere, quasi-Newton steps
    go on.
    """

    def loss(moved: Tensor) -> tuple[Tensor, Tensor]:
        value, gradient = log_evidence(target, mean + _MOVED * moved[0])
        return 0.5 * moved.square().sum(-1) - value, moved - _MOVED * gradient

    def second_order(moved: Tensor) -> Quadratic:
        value, gradient, told = with_information(target, mean + _MOVED * moved[0])
        value = value - 0.5 * moved.square().sum(-1)
        curvature = _MOVED**2 * told.nan_to_num(0.0, 0.0, 0.0) + torch.eye(len(mean)).to(mean)
        return Quadratic(value, _MOVED * gradient - moved, -curvature.unsqueeze(0))

    near = climb_by_newton(second_order, start, box, _NEWTON, _NEAR)
    if bool(near.reached.all()):
        return near.points
    return minimize_batch(
        loss,
        near.points,
        box,
        max_iter=_STEPS_OF_TARGET,
        gradient_tolerance=_SLOPE_OF_TARGET,
        check_every=1,
    ).point


def _prior_of_logs(start: Similarity) -> tuple[Tensor, Tensor]:
    dim = len(start.lengthscale)
    mean = _logs(start)
    spread = [std for _, std in _KNOWN.values()] + [1.0] * dim
    return mean, mean.new_tensor(spread)


def _logs(similarity: Similarity) -> Tensor:
    numbers = torch.stack(list(similarity[:-1]))
    return torch.cat([numbers, similarity.lengthscale]).double().log()


def _similarity(logs: Tensor) -> Similarity:
    values = logs.exp()
    level, spread, own, noise = values[:4]
    return Similarity(level, spread, own, noise, values[4:])


def _held_out(tasks: TaskEnsemble) -> _Held:
    """Return tasks as targets, in double precision, and what the others say of their inputs."""
    chosen = _spread_out(tasks.count, _MOST_TARGETS)
    rows, seen = _rows_of(tasks.seen[chosen].sum(-1).tolist(), tasks.inputs.device)
    x = tasks.inputs[chosen].gather(
        1, rows.unsqueeze(-1).expand(*rows.shape, tasks.inputs.shape[-1])
    )
    with torch.no_grad():
        mean, std = tasks.moments(x.reshape(-1, x.shape[-1]))
    others = torch.ones(len(chosen), tasks.count, dtype=torch.bool)
    others[torch.arange(len(chosen)), chosen] = False
    shape = *x.shape[:2], tasks.count
    means, variances = (part.mT.reshape(shape).double() for part in (mean, std.square()))
    picked = others.to(x.device).unsqueeze(1).expand(shape)
    without = means[picked].reshape(*x.shape[:2], tasks.count - 1)
    variance = torch.where(picked, variances, 0.0).sum(-1)
    y = torch.where(seen, tasks.targets[chosen].gather(1, rows), 0.0)
    return _Held(x.double(), y.double(), seen, without, variance)


def _rows_of(sizes: list[int], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return evenly spread observations of tasks, and which of them are there, ``h x n`` each."""
    most = min(max(sizes), _MOST_ROWS)
    rows, seen = torch.zeros(len(sizes), most, dtype=torch.long), torch.zeros(len(sizes), most) > 0
    for number, size in enumerate(sizes):
        some = _spread_out(size, most)
        rows[number, : len(some)], seen[number, : len(some)] = some, True
    return rows.to(device), seen.to(device)


def _spread_out(count: int, most: int) -> Tensor:
    return torch.linspace(0, count - 1, min(count, most)).round().long()


def _log_evidence(tasks: TaskEnsemble, held: _Held, similarity: Similarity) -> Tensor:
    """Return the sum of the log evidences of all targets, up to a constant."""
    known = Features(held.means, held.variance)
    cov = prior_covariance(similarity, held.x, known, held.x, known, kernel=tasks.kernel)
    both = held.seen.unsqueeze(-1) & held.seen.unsqueeze(-2)
    noise = torch.where(held.seen, similarity.noise, 1.0)
    root, info = torch.linalg.cholesky_ex(torch.where(both, cov, 0.0) + torch.diag_embed(noise))
    residual = torch.where(held.seen, held.y - prior_mean(similarity, known), 0.0)
    white = torch.linalg.solve_triangular(root, residual.unsqueeze(-1), upper=False)
    log_det = root.diagonal(dim1=-2, dim2=-1).log().sum()
    value = -0.5 * white.square().sum() - log_det
    return torch.where((info > 0).any(), -torch.inf, value)
