"""The similarity of tasks, learnt with each task in turn as the target, and its update by a target.

A target may resemble the tasks less than they resemble each other. Its values then update the similarity:
the logarithms of its parameters have a normal prior around those of the tasks, with standard deviation 1.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.models.hyperparameter_search import NormalPrior, most_probable, posterior
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
from botorch_costly.optim.newton import climb_by_newton
from botorch_costly.optim.smooth import by_autograd

_MOST_TARGETS, _MOST_ROWS = 48, 64  # number of tasks used as targets, and of observations of each
_STEPS, _SLOPE = 80, 1e-2
_PRIORS = {  # mean and standard deviation of the logarithm, in agreement with two tables of 25 tasks
    "level": (math.log(0.87), 0.5),
    "spread": (math.log(0.4), 1.0),
    "own": (math.log(0.4), 1.0),
    "noise": (math.log(0.05), 1.0),
}
_BOX = math.log(1e-4), math.log(1e2)
_FURTHEST = 3.0  # bound of the distance of a target's log parameters from those of the tasks
_STEPS_OF_TARGET, _SLOPE_OF_TARGET = 15, 5e-2  # per evaluation: a finer search changes no choice
_NEWTON, _NEAR = 8, 8e-3  # largest number of Newton steps; step tolerance, in widths of the box
_FEWEST = 2  # smallest number of a target's values that determine a similarity


class _Held(NamedTuple):
    """Tasks as targets of all others."""

    x: Tensor  # shape: (h, n, d)
    y: Tensor  # shape: (h, n)
    seen: Tensor  # bool, shape: (h, n)
    means: Tensor  # of all other tasks, shape: (h, n, tasks - 1)
    variance: Tensor  # summed over all other tasks, shape: (h, n)


def typical_similarity(tasks: TaskEnsemble) -> Similarity:
    """Return the prior mean of the similarity, with the tasks' geometric mean lengthscales."""
    numbers = {name: tasks.theta.new_tensor(mean).exp() for name, (mean, _) in _PRIORS.items()}
    return Similarity(**numbers, lengthscale=tasks.lengthscale.log().mean(0).exp())


def learn_similarity(tasks: TaskEnsemble) -> Similarity:
    """Return the most probable similarity (MAP), if each task is predicted from all others.

    At most 48 tasks, and at most 64 observations of each, are targets; they are evenly spread.

    Args:
        tasks: The tasks, fitted.
    """
    start = typical_similarity(tasks)
    if tasks.count < 2:
        return start
    held = _held_out(tasks)
    mean = _logs(start)
    std = mean.new_tensor([std for _, std in _PRIORS.values()] + [1.0] * len(start.lengthscale))

    def evidence(theta: Tensor) -> Tensor:
        return torch.stack([_log_evidence(tasks, held, _similarity(logs)) for logs in theta])

    density = posterior(by_autograd(evidence), NormalPrior(mean, std))
    box = mean.new_tensor(_BOX).unsqueeze(-1).expand(2, len(mean))
    end = most_probable(density, mean[None], box, max_iter=_STEPS, gradient_tolerance=_SLOPE)
    return Similarity(*(value.to(tasks.theta) for value in _similarity(end.theta)))


def adapt_similarity(
    similarity: Similarity,
    tasks: TaskEnsemble,
    X: Tensor,
    Y: Tensor,
    known: Features | None = None,
    *,
    start: Similarity | None = None,
) -> Similarity:
    """Return the most probable similarity (MAP) given a target's values.

    With fewer than two values it is ``similarity``.

    Args:
        similarity: The similarity of the tasks.
        tasks: The tasks, fitted.
        X: Inputs of the target, ``n x d``.
        Y: Its values, ``n x 1``, in units of the tasks' values.
        known: The result of ``features`` at the inputs, if already computed.
        start: Start of the search, such as an earlier result; ``similarity`` if omitted.
    """
    if len(X) < _FEWEST:
        return similarity
    known = features(tasks, X) if known is None else known
    target = target_of(X, Y.squeeze(-1), known, tasks.kernel, units_of(tasks))
    mean = _logs(similarity)
    first = torch.zeros_like(mean) if start is None else _logs(start) - mean
    box = mean.new_tensor([-_FURTHEST, _FURTHEST]).unsqueeze(-1).expand(2, len(mean))
    z = _most_probable(target, mean, first.unsqueeze(0), box).nan_to_num(0.0)
    return Similarity(*(value.to(tasks.theta) for value in _similarity(mean + z)))


@torch.no_grad()
def _most_probable(target: Target, mean: Tensor, start: Tensor, box: Tensor) -> Tensor:
    """Return the deviation ``z`` of the logarithms from their mean, shape ``(p,)``.

    The curvature of the Newton steps is the expected information of the values. If they do not
    converge, quasi-Newton steps follow.
    """
    prior = NormalPrior(torch.zeros_like(mean), torch.ones_like(mean))

    def evidence(z: Tensor) -> tuple[Tensor, Tensor]:
        return log_evidence(target, mean + z[0])

    def second_order(z: Tensor) -> Quadratic:
        value, gradient, information = with_information(target, mean + z[0])
        log_prior, slope = prior(z)
        curvature = information.nan_to_num(0.0, 0.0, 0.0) + torch.eye(len(mean)).to(mean)
        return Quadratic(value + log_prior, gradient + slope, -curvature.unsqueeze(0))

    end = climb_by_newton(second_order, start, box, _NEWTON, _NEAR)
    if bool(end.reached.all()):
        return end.points[0]
    return most_probable(
        posterior(evidence, prior),
        end.points,
        box,
        max_iter=_STEPS_OF_TARGET,
        gradient_tolerance=_SLOPE_OF_TARGET,
        check_every=1,
    ).theta


def _logs(similarity: Similarity) -> Tensor:
    numbers = torch.stack(list(similarity[:-1]))
    return torch.cat([numbers, similarity.lengthscale]).double().log()


def _similarity(logs: Tensor) -> Similarity:
    values = logs.exp()
    level, spread, own, noise = values[:4]
    return Similarity(level, spread, own, noise, values[4:])


def _held_out(tasks: TaskEnsemble) -> _Held:
    """Return tasks as targets, in float64, and the other tasks' moments at their inputs."""
    chosen = _spread_out(tasks.count, _MOST_TARGETS)
    rows, seen = _rows_of(tasks.seen[chosen].sum(-1).tolist(), tasks.inputs.device)
    x = tasks.inputs[chosen].take_along_dim(rows.unsqueeze(-1), 1)
    with torch.no_grad():
        mean, std = tasks.moments(x.reshape(-1, x.shape[-1]))
    others = torch.ones(len(chosen), tasks.count, dtype=torch.bool)
    others[torch.arange(len(chosen)), chosen] = False
    shape = *x.shape[:2], tasks.count
    means, variances = (moment.mT.reshape(shape).double() for moment in (mean, std.square()))
    mask = others.to(x.device).unsqueeze(1).expand(shape)
    means = means[mask].reshape(*x.shape[:2], tasks.count - 1)
    variance = torch.where(mask, variances, 0.0).sum(-1)
    y = torch.where(seen, tasks.targets[chosen].gather(1, rows), 0.0)
    return _Held(x.double(), y.double(), seen, means, variance)


def _rows_of(sizes: list[int], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return numbers of evenly spread observations of tasks, and a mask of valid ones, ``h x n``."""
    most = min(max(sizes), _MOST_ROWS)
    rows, seen = torch.zeros(len(sizes), most, dtype=torch.long), torch.zeros(len(sizes), most) > 0
    for task, size in enumerate(sizes):
        numbers = _spread_out(size, most)
        rows[task, : len(numbers)], seen[task, : len(numbers)] = numbers, True
    return rows.to(device), seen.to(device)


def _spread_out(count: int, most: int) -> Tensor:
    return torch.linspace(0, count - 1, min(count, most)).round().long()


def _log_evidence(tasks: TaskEnsemble, held: _Held, similarity: Similarity) -> Tensor:
    """Return the sum of the log evidences of all targets, up to a constant."""
    others = Features(held.means, held.variance)
    cov = prior_covariance(similarity, held.x, others, held.x, others, kernel=tasks.kernel)
    mask = held.seen.unsqueeze(-1) & held.seen.unsqueeze(-2)
    noise = torch.where(held.seen, similarity.noise, 1.0)
    root, info = torch.linalg.cholesky_ex(torch.where(mask, cov, 0.0) + torch.diag_embed(noise))
    residual = torch.where(held.seen, held.y - prior_mean(similarity, others), 0.0)
    white = torch.linalg.solve_triangular(root, residual.unsqueeze(-1), upper=False)
    log_det = root.diagonal(dim1=-2, dim2=-1).log().sum()
    value = -0.5 * white.square().sum() - log_det
    return torch.where((info > 0).any(), -torch.inf, value)
