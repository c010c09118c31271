"""Seconds of a segment, ask and tell, of ``CurveOptimizer`` on one thread, beside a loop of BoTorch.

The optimizer plays trainings of 50 iterations in seven dimensions until a thousand rewards are stored,
fitting as it does; timed are the last segments, refits included. The loop of BoTorch knows whole
trainings alone, as many as were begun: a GP, fitted anew each time, and expected improvement per cost
over the space. "studies" begins with the curves of 25 earlier studies of 500 configurations; what that
takes once, and the memory of the process at its highest, are reported with it.
"""

import resource
import time
from collections.abc import Sequence
from typing import Any

import torch
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf

from benchmarks.harness.command_line import parser_for
from benchmarks.harness.gaussian import fitted
from benchmarks.harness.record import Row, told, write_results
from botorch_costly import Compression, CurveOptimizer, Real, SearchSpace, Task
from botorch_costly.acquisition import LogEIPerCost
from botorch_costly.models import LinearCost

NAME = "curve-speed"
DIM, LONGEST, REWARDS, TIMED = 7, 50, 1000, 20
KINDS: dict[str, dict[str, Any]] = {
    "studies": {},
    "ends": {},
    "scores": {"compression": Compression()},
}
_STUDIES, _CONFIGS = 25, 500  # of which every other training was stopped in the middle


def _reward(x: Sequence[float], iteration: int) -> float:
    away = sum((value - 0.3) ** 2 for value in x)
    return -away - 2 / (3 + iteration)


def _studies(seed: int) -> list[Task]:
    """Return the curves of earlier studies, whose optima differ."""
    generator, studies = torch.Generator().manual_seed(seed), []
    for _ in range(_STUDIES):
        away = 0.1 * torch.randn(DIM, generator=generator)
        X = torch.rand(_CONFIGS, DIM, generator=generator, dtype=torch.float64)
        ends = [LONGEST // (1 + i % 2) for i in range(_CONFIGS)]
        rows = [(x, k) for x, end in zip(X.tolist(), ends, strict=True) for k in range(1, end + 1)]
        moved = (X + away).tolist()
        values = [_reward(moved[i], k) for i, end in enumerate(ends) for k in range(1, end + 1)]
        names = [f"x{i}" for i in range(DIM)]
        shares = [k / LONGEST for _, k in rows]
        studies.append(Task([x for x, _ in rows], values, names=names, progress=shares))
    return studies


def time_optimizer(kind: str, seed: int) -> Row:
    """Time ask and tell once a thousand rewards are stored."""
    space = SearchSpace({f"x{i}": Real(0.0, 1.0) for i in range(DIM)})
    tasks, began = _studies(seed) if kind == "studies" else [], time.perf_counter()
    optimizer = CurveOptimizer(space, LONGEST, tasks=tasks, seed=seed, **KINDS[kind])
    built = time.perf_counter() - began
    stored = 0
    seconds: list[float] = []
    while stored < REWARDS or len(seconds) < TIMED:
        began = time.perf_counter()
        segment = optimizer.ask()
        asked = time.perf_counter() - began
        x = space.encode(segment.config).tolist()
        curve = [_reward(x, at) for at in range(segment.since + 1, segment.until + 1)]
        began = time.perf_counter()
        optimizer.tell(segment, curve, cost=segment.iterations * (1 + x[0]))
        stored += segment.iterations
        if stored > REWARDS * 0.8:
            seconds.append(asked + time.perf_counter() - began)
    whole = len(optimizer.trainings)
    botorch = time_botorch(whole, seed)
    ours = sum(seconds) / len(seconds)
    return {
        "kind": kind,
        "seed": seed,
        "built": built,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "trainings": whole,
        "rewards": stored,
        "seconds": ours,
        "slowest": max(seconds),
        "botorch_seconds": botorch,
        "ratio": ours / botorch,
    }


def time_botorch(trainings: int, seed: int) -> float:
    """Time a round of a loop over whole trainings."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(trainings, DIM, generator=generator, dtype=torch.float64)
    y = torch.tensor([[_reward(x, LONGEST)] for x in X.tolist()], dtype=torch.float64)
    cost = LONGEST * (1 + X[:, :1])
    bounds = torch.stack([torch.zeros(DIM), torch.ones(DIM)]).double()
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        model = fitted(SingleTaskGP(X, y))
        acquisition = LogEIPerCost(model, LinearCost(X, cost), float(y.max()))
        with torch.random.fork_rng():
            optimize_acqf(acquisition, bounds, q=1, num_restarts=16, raw_samples=128)
        seconds.append(time.perf_counter() - began)
    return sum(seconds) / len(seconds)


def main(arguments: Sequence[str]) -> None:
    """Time, store the rows and print them."""
    parser = parser_for(NAME, "seconds of a segment of training, ask and tell")
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    seeds = list(range(options.seeds))
    rows = (time_optimizer(kind, seed) for kind in KINDS for seed in seeds)
    found = told(rows, lambda row: text([row]))
    write_results(NAME, found, seeds, directory=options.results)


def text(rows: Sequence[Row]) -> str:
    """Return a line for each row."""
    return "\n".join(
        f"{row['kind']:<8} seed {row['seed']}  {row['trainings']:>3} trainings, {row['rewards']} rewards"
        f"  {row['seconds']:.3f} s a segment (slowest {row['slowest']:.3f})"
        f"  BoTorch's loop {row['botorch_seconds']:.3f} s  ratio {row['ratio']:.2f}"
        f"  built in {row['built']:.1f} s, {row['memory']:.2f} GB"
        for row in rows
    )
