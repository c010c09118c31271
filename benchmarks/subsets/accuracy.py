"""Which value is the smallest, beside millions of draws: ``python -m benchmarks prob-min``.

Four kinds of problems: Wishart covariances with random means, draws of a Matérn prior, a smooth prior
that is nearly singular, and posteriors after eight observations, nearly singular too.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from botorch.utils.probability.mvnxpb import MVNXPB
from torch import Tensor

from benchmarks.harness.command_line import seeds_of
from benchmarks.harness.record import Row
from benchmarks.harness.sweep import measured, sweep_parser
from botorch_costly.numerics.ep import log_prob_min
from botorch_costly.numerics.radial import PROFILES
from botorch_costly.numerics.separation import log_prob_min_by_draws

NAME = "prob-min"
KINDS = ("wishart", "prior", "smooth", "posterior")
SIZES = (5, 10, 25, 50)
WAYS = ("draws", "corrected", "EP", "MVNXPB")
_DRAWS, _AT_ONCE = 4_000_000, 200_000
_NUMBERS: dict[str, Any] = {"dtype": torch.float64}


class Task(NamedTuple):
    """A problem, and the key of its row."""

    kind: str
    points: int
    seed: int


def problem_of(task: Task) -> tuple[Tensor, Tensor]:
    """Return the mean and the covariance of a problem."""
    generator = torch.Generator().manual_seed(1000 * task.seed + task.points)
    X = torch.rand(task.points, 1 + task.seed % 3, generator=generator, **_NUMBERS)
    if task.kind == "wishart":
        root = torch.randn(task.points, task.points + 2, generator=generator, **_NUMBERS)
        mean = 0.5 * torch.randn(task.points, generator=generator, **_NUMBERS)
        return mean, root @ root.T / task.points
    scale = 0.1 + 0.6 * float(torch.rand(1, generator=generator))
    if task.kind == "prior":
        return torch.zeros(task.points, **_NUMBERS), _covariance("matern52", X, X, scale)
    if task.kind == "smooth":
        return 0.5 * X[:, 0], _covariance("rbf", X, X, 2 * scale)
    known = torch.rand(8, X.shape[1], generator=generator, **_NUMBERS)
    K = _covariance("matern52", known, known, scale) + 1e-3 * torch.eye(8, **_NUMBERS)
    y = torch.linalg.cholesky(K) @ torch.randn(8, generator=generator, **_NUMBERS)
    across = _covariance("matern52", known, X, scale)
    weights = torch.linalg.solve(K, across)
    return weights.T @ y, _covariance("matern52", X, X, scale) - weights.T @ across


def _covariance(family: str, a: Tensor, b: Tensor, scale: float) -> Tensor:
    profile = PROFILES[family]
    return profile.phi(profile.constant * torch.cdist(a, b) / scale)


def measure(task: Task) -> Row:
    """Return each way's total variation from the draws, and its milliseconds."""
    mean, cov = problem_of(task)
    truth = _drawn(mean, cov, task.seed)
    row: dict[str, float] = {}
    for way, probability in {
        "draws": lambda: log_prob_min_by_draws(mean, cov).exp(),
        "corrected": lambda: log_prob_min(mean, cov).exp(),
        "EP": lambda: log_prob_min(mean, cov, corrected=False).exp(),
        "MVNXPB": lambda: _by_conditioning(mean, cov),
    }.items():
        began = time.perf_counter()
        found = probability()
        row[f"{way}: ms"] = 1e3 * (time.perf_counter() - began)
        row[way] = float(0.5 * (found - truth).abs().sum())
    for way, log_probability in _DIFFERENTIABLE.items():
        leaf, covariance = mean.clone().requires_grad_(), cov.clone().requires_grad_()
        began = time.perf_counter()
        log_probability(leaf, covariance)[0].backward()
        row[f"{way}, with derivatives: ms"] = 1e3 * (time.perf_counter() - began)
    return {**task._asdict(), **row}


_DIFFERENTIABLE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "draws": log_prob_min_by_draws,
    "corrected": log_prob_min,
}


def _by_conditioning(mean: Tensor, cov: Tensor) -> Tensor:
    """Return BoTorch's orthant probabilities, by bivariate conditioning, normalized."""
    points = len(mean)
    D = torch.eye(points, **_NUMBERS).expand(points, points, points).clone()
    D -= torch.eye(points, **_NUMBERS).unsqueeze(1)
    others = ~torch.eye(points, dtype=torch.bool)
    D = D[others].reshape(points, points - 1, points)
    K = D @ cov @ D.mT + 1e-8 * torch.eye(points - 1, **_NUMBERS)
    low = -(D @ mean)
    bounds = torch.stack([low, torch.full_like(low, torch.inf)], -1)
    raw = MVNXPB(K, bounds).solve().exp().nan_to_num()
    return raw / raw.sum()


def _drawn(mean: Tensor, cov: Tensor, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    values, vectors = torch.linalg.eigh(cov)
    root = vectors * values.clamp_min(0).sqrt()
    counts = torch.zeros(len(mean), **_NUMBERS)
    for _ in range(_DRAWS // _AT_ONCE):
        z = torch.randn(_AT_ONCE, len(mean), generator=generator, **_NUMBERS)
        counts += torch.bincount((z @ root.T + mean).argmin(-1), minlength=len(mean))
    return counts / counts.sum()


def text(rows: Sequence[Row]) -> str:
    """Return mean and worst total variation of each way, and its milliseconds, by size and kind."""
    lines = [f"{'points':>6} {'kind':<10}{'':>9}" + "".join(f"{way:>24}" for way in WAYS)]
    for points in SIZES:
        for kind in (*KINDS, "all"):
            mine = [r for r in rows if r["points"] == points and kind in (r["kind"], "all")]
            if mine:
                lines.append(f"{points:>6} {kind:<10}{len(mine):>9}" + _cells(mine))
    lines.append(
        "Problems; total variation from 4,000,000 draws, mean and largest; ms, one by one."
    )
    for points in SIZES:
        mine = [row for row in rows if row["points"] == points]
        if mine:
            cells = (f"{way} {_with_derivatives(mine, way):.0f}" for way in _DIFFERENTIABLE)
            lines.append(f"{points:>6} points with derivatives, ms: {', '.join(cells)}")
    return "\n".join(lines)


def _with_derivatives(rows: Sequence[Row], way: str) -> float:
    return statistics.median(row[f"{way}, with derivatives: ms"] for row in rows)


def _cells(rows: Sequence[Row]) -> str:
    cells = []
    for way in WAYS:
        errors = [row[way] for row in rows]
        ms = statistics.median(row[f"{way}: ms"] for row in rows)
        cells.append(f"{statistics.fmean(errors):.4f} {max(errors):.4f} {ms:>6.1f}".rjust(24))
    return "".join(cells)


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the table."""
    parser = sweep_parser(NAME, "which value is the smallest, beside millions of draws", seeds=25)
    parser.add_argument("--points", nargs="+", type=int, choices=SIZES, default=list(SIZES))
    options = parser.parse_args(arguments)
    wanted = [Task(k, p, s) for s in seeds_of(options) for p in options.points for k in KINDS]
    print(text(measured(NAME, wanted, measure, options)))
