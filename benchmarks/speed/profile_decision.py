"""Where the time of one decision after a query goes, and how far each part is from its floor.

The floor of a part is what its floating-point operations take at the measured rate of a matrix
product of the decision's own shape, plus what its operations take if each were a small one: no code
that asks for the same operations one by one can be faster by much. The decision is that of
``tuners.strategy``, made here part by part; the sum of the parts is held against a whole one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from benchmarks.harness.clock import small_operation_us, synchronize, timed
from benchmarks.harness.record import Row
from benchmarks.speed.counting import Counter, Tally
from benchmarks.speed.decision import BANDWIDTH, BETA, CANDIDATES, RESTARTS, RULE, Case
from benchmarks.speed.problems import draw
from botorch_costly.acquisition import TimeVaryingUCB
from botorch_costly.numerics.expansion import Quadratic
from botorch_costly.optim.climb import InCube, climb
from botorch_costly.optim.lbfgs import ValueAndGradient
from botorch_costly.optim.local_optima import Ascent, distinct, far_rival
from botorch_costly.query import Verdict
from botorch_costly.tuners.online.strategy import comparison_of

APPEND, SEEN, STARTS = "append", "belief seen from the round", "draw starts"
EVALUATIONS, BOOKKEEPING = "L-BFGS evaluations", "L-BFGS bookkeeping"
NEWTON, MERGING, RIVAL, COMPARISON = "Newton", "merging", "far rival", "comparison and rule"
PARTS = (APPEND, SEEN, STARTS, EVALUATIONS, BOOKKEEPING, NEWTON, MERGING, RIVAL, COMPARISON)
WHOLE = "whole decision"
MAX_ITER = 100
PRECISIONS = (torch.float32, torch.float64)


class Watch:
    """Says where time goes: every moment counts for the part named last."""

    def __init__(self, device: torch.device | str) -> None:
        self.part, self._device = "", device
        self.spent: dict[str, float] = dict.fromkeys(PARTS, 0.0)
        self._since = 0.0

    def at(self, part: str) -> None:
        """Let the time from now on count for a part, or for none."""
        synchronize(self._device)
        now = perf_counter()
        if self.part:
            self.spent[self.part] += 1e3 * (now - self._since)
        self.part, self._since = part, now

    @contextmanager
    def during(self, part: str) -> Iterator[None]:
        """Let the block count for a part, and what follows for the one before."""
        before = self.part
        self.at(part)
        yield
        self.at(before)


class WatchedUCB(TimeVaryingUCB):
    """An upper confidence bound that tells a watch what it is asked for."""

    watch: Watch

    def with_gradient(self, like: Tensor, sign: int = 1) -> ValueAndGradient:
        """Begin L-BFGS: from here on its bookkeeping counts, and evaluations apart from it."""
        self.watch.at(BOOKKEEPING)
        function = super().with_gradient(like, sign)

        def evaluate(X: Tensor) -> tuple[Tensor, Tensor]:
            with self.watch.during(EVALUATIONS):
                return function(X)

        return evaluate

    def second_order(self, X: Tensor) -> Quadratic:
        """Begin Newton's method, or go on with it."""
        self.watch.at(NEWTON)
        return super().second_order(X)


def decide_by_parts(case: Case, watch: Watch) -> tuple[Tensor, Verdict]:
    """Decide as a tuner does, with a watch; return what is played and what the rule says."""
    problem, belief, bounds = case.problem, case.belief, case.problem.bounds
    belief.set_extra_state(case.state)
    generator, (lower, width) = case.generator(), bounds
    watch.at(APPEND)
    belief.observe(problem.inputs[-1], float(problem.rewards[-1]))
    watch.at(SEEN)
    acquisition = WatchedUCB(belief, BETA, case.now)
    acquisition.watch = watch
    for precision in PRECISIONS:
        belief.snapshot(case.now, precision)
    watch.at(STARTS)
    starts = _starts(problem.dim, generator).to(bounds)
    watch.at(BOOKKEEPING)
    ends = climb(InCube(acquisition, lower, width), starts, BANDWIDTH, MAX_ITER)
    watch.at(MERGING)
    ascent = Ascent(starts, *ends)
    optima = distinct(ascent, bounds, BANDWIDTH)
    watch.at(RIVAL)
    points = optima.points
    if len(points) == 1:
        options: dict[str, Any] = {"num_candidates": CANDIDATES, "generator": generator}
        rival = far_rival(acquisition, optima, bounds, BANDWIDTH, starts, **options)
        points = points if rival is None else torch.cat([points, rival.point.unsqueeze(0)])
    watch.at(COMPARISON)
    comparison = comparison_of(belief, points, case.now, BETA, RULE.reads_covariances)
    verdict = RULE(comparison, case.progress, generator)
    bool(verdict.query)
    watch.at("")
    return points[0], verdict


def _starts(dim: int, generator: torch.Generator) -> Tensor:
    seed = torch.randint(2**31 - 1, (), generator=generator, device=generator.device)
    return SobolEngine(dim, scramble=True, seed=int(seed)).draw(RESTARTS, dtype=torch.float64)


def profile(n: int, dim: int, repeats: int, seed: int, device: str) -> list[Row]:
    """Return a row for each part of a decision, and one for the whole of it."""
    case = Case(draw(n, dim, seed, device, ratio=0.5), seed, against_botorch=False)
    spent, whole = _times(case, repeats, device)
    tallies = _count(case, device)
    rates = {dtype: product_rate(n, dtype, device) for dtype in PRECISIONS}
    small_us = median(small_operation_us(device) for _ in range(repeats))
    total = sum(spent.values())
    everything = Tally()
    rows = []
    for part in PARTS:
        tally = tallies.get(part, Tally())
        rows.append(_row(part, spent[part], spent[part] / total, tally, rates, small_us))
        _add(everything, tally)
    rows.append(_row(WHOLE, whole, whole / total, everything, rates, small_us))
    size = {"part": "profile", "device": device, "observations": n, "dim": dim, "repeats": repeats}
    return [{**size, **row} for row in rows]


def _times(case: Case, repeats: int, device: str) -> tuple[dict[str, float], float]:
    """Return median milliseconds of the parts, and of a whole decision, by turns."""
    by_part: list[dict[str, float]] = []
    whole = []
    for _ in range(1 + repeats):  # the first to warm up
        watch = Watch(device)
        decide_by_parts(case, watch)
        by_part.append(watch.spent)
        whole.append(timed(case.ours(), device)[0])
    return {part: median(spent[part] for spent in by_part[1:]) for part in PARTS}, median(whole[1:])


def _count(case: Case, device: str) -> dict[str, Tally]:
    watch = Watch(device)
    counter = Counter(lambda: watch.part)
    with counter:
        decide_by_parts(case, watch)
    return counter.tallies


def product_rate(n: int, dtype: torch.dtype, device: str, repeats: int = 20) -> float:
    """Return floating-point operations a second of the product that evaluations are made of."""
    a = torch.rand(RESTARTS, n + 1, dtype=dtype, device=device)
    b = torch.rand(n + 1, n + 1, dtype=dtype, device=device)

    def multiply() -> Tensor:
        return a @ b.mT

    multiply()  # to warm up
    milliseconds = median(timed(multiply, device)[0] for _ in range(repeats))
    return 2e3 * RESTARTS * (n + 1) ** 2 / milliseconds


def _row(
    part: str,
    ms: float,
    share: float,
    tally: Tally,
    rates: dict[torch.dtype, float],
    small_us: float,
) -> Row:
    arithmetic = sum(1e3 * flops / rates[dtype] for dtype, flops in tally.flops.items())
    overhead = 1e-3 * tally.operations * small_us
    floor = arithmetic + overhead
    return {
        "step": part,
        "ms": ms,
        "share": share,
        "operations": tally.operations,
        "flops": tally.total_flops,
        "bytes": tally.bytes,
        "waits": tally.waits,
        "arithmetic_ms": arithmetic,
        "overhead_ms": overhead,
        "floor_ms": floor,
        "times_floor": ms / floor if floor else None,
        "small_operation_us": small_us,
        "gflops_single": rates[torch.float32] / 1e9,
        "gflops_double": rates[torch.float64] / 1e9,
    }


def _add(total: Tally, part: Tally) -> None:
    total.operations += part.operations
    total.bytes += part.bytes
    total.waits += part.waits
    for dtype, flops in part.flops.items():
        total.flops[dtype] = total.flops.get(dtype, 0.0) + flops


def describe(row: Row) -> str:
    """Return a row as a line of a table, the first one with its head."""
    return _head(row) + _line(row) if row["step"] == PARTS[0] else _line(row)


def _head(row: Row) -> str:
    return (
        f"one decision, n = {row['observations']}, d = {row['dim']}: products"
        f" {row['gflops_single']:.1f} and {row['gflops_double']:.1f} GFLOP/s (single, double),"
        f" a small operation {row['small_operation_us']:.2f} us\n"
        f"{'part':<27} {'ms':>7} {'share':>6} {'ops':>6} {'waits':>5} {'Mflop':>7} {'MB':>6}"
        f" {'floor':>6} {'times':>6}\n"
    )


def _line(row: Row) -> str:
    times = "" if row["times_floor"] is None else f" {row['times_floor']:6.1f}"
    return (
        f"{row['step']:<27} {row['ms']:7.2f} {row['share']:6.1%} {row['operations']:6}"
        f" {row['waits']:5} {row['flops'] / 1e6:7.2f} {row['bytes'] / 1e6:6.1f}"
        f" {row['floor_ms']:6.2f}{times}"
    )
