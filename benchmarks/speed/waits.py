"""How often a device is waited for: to read what it computed, or to send something to it at once.

A wait costs some ten microseconds on a GPU and empties its queue; how often there is one depends on the
program alone. So it is counted on the stand-in of the tests, ``python -m tests.far -m benchmarks speed
--parts waits --device far``, and on a GPU by torch itself, which warns of each one. On a CPU nothing is
waited for, and there is no row.
"""

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from statistics import median
from typing import Any

import torch

import botorch_costly as bc
from benchmarks.harness.record import Row
from benchmarks.priced.continuous import cube
from benchmarks.speed import batch
from botorch_costly.errors import check
from botorch_costly.numerics.ep import log_prob_min
from botorch_costly.problems import DriftingFunction
from botorch_costly.simulation import draw, play

DIM = 4  # of decisions
_LEARNT, _COUNTED = 5, 8  # rounds before the count, and rounds that are counted
_SURE = bc.ConfidenceQuery(1e-9)  # never queries
_BELIEFS, _OBSERVATIONS = 64, 30  # of a batch
_TRIALS, _POINTS, _STEPS = 8, 60, 6  # of a simulation
_PRICE = 0.05
_LONGEST = 8  # iterations of a training
_EVALUATIONS = 5  # told to an optimizer of trainings before the count

Count = Callable[[], int]


@contextmanager
def counting(device: str) -> Iterator[Count]:
    """Yield what says how often a device has been waited for so far."""
    kind = torch.device(device).type
    check(kind in ("cuda", "far"), "device", "'cuda', or 'far' under tests.far", device)
    if kind == "far":
        far = import_module("tests.far")
        before = sum(far.waits.values())
        yield lambda: sum(far.waits.values()) - before
        return
    mode = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield lambda: sum("synchroniz" in str(one.message) for one in caught)
        finally:
            torch.cuda.set_sync_debug_mode(mode)


def waits(seed: int, device: str) -> Iterator[Row]:
    """Yield how often each part waits for a device."""
    for name, rule in {
        "a decision with a query": bc.AlwaysQuery(),
        "a decision without a query": _SURE,
        "a decision with a price": bc.PricedQuery(_PRICE),
        "a decision by confidence": bc.ConfidenceQuery(0.8),
    }.items():
        yield _row(device, name, _decisions(rule, seed, device))
    yield _row(device, f"a batch of {_BELIEFS} decisions", _batch(seed, device))
    yield _row(device, f"a step of the simulator, {_TRIALS} trials", _steps(seed, device))
    yield _row(device, "log_prob_min", _prob_min(seed, device))
    for name, make in _OPTIMIZERS.items():
        if "device" in inspect.signature(make).parameters:
            yield _row(device, f"an ask of {name}", _asks(name, seed, device))


def _row(device: str, name: str, counts: list[int]) -> Row:
    numbers = {"times": len(counts), "waits": median(counts), "most": max(counts)}
    return {"part": "waits", "device": device, "of": name, **numbers}


def _decisions(rule: bc.QueryRule, seed: int, device: str) -> list[int]:
    """Count the waits of each ask with its tell, if it is queried."""
    rounds, hold = _LEARNT + _COUNTED, bc.Hold(share=0.0)
    tuner = bc.OnlineTuner(cube(DIM), rounds, query=rule, hold=hold, seed=seed, device=device)
    counts = []
    for _ in range(rounds):
        with counting(device) as count:
            decision = tuner.ask()
            if decision.query:
                tuner.tell(decision, reward(decision.config))
            counts.append(count())
    return counts[_LEARNT:]


def reward(config: Mapping[str, Any]) -> float:
    """Return the reward of a configuration of the cube, largest where all columns are 0.3."""
    return -sum((float(value) - 0.3) ** 2 for value in config.values())


def _batch(seed: int, device: str) -> list[int]:
    beliefs = batch.batch_of(_BELIEFS, _OBSERVATIONS, DIM, seed, device)
    starts = batch.starts_of(DIM, seed, device)
    with counting(device) as count:
        batch.decide(beliefs, starts)
        return [count()]


def _steps(seed: int, device: str) -> list[int]:
    """Count the waits of a step: those of a run, less those of one that is half as long."""
    problem = DriftingFunction.on_unit_interval(_POINTS, forgetting=0.03)
    totals = []
    for horizon in (_STEPS, 2 * _STEPS):
        rules = bc.AlwaysQuery(), bc.ConfidenceQuery(0.8), bc.PricedQuery(_PRICE)
        policies = [bc.GridPolicy(str(rule), rule) for rule in rules]
        draws = draw(problem, range(_TRIALS), horizon, seed).to(device)
        with counting(device) as count:
            play(problem, policies, draws)
            totals.append(count())
    return [-(-(totals[1] - totals[0]) // _STEPS)]


def _prob_min(seed: int, device: str) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    root = torch.randn(4, 20, 20, generator=generator, dtype=torch.float64)
    mean, cov = root[:, 0].to(device), (root @ root.mT / 20).to(device)
    with counting(device) as count:
        log_prob_min(mean, cov)
        return [count()]


# -- optimizers of whole trainings ----------------------------------------------------------------

_OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "CurveOptimizer": bc.CurveOptimizer,
    "SubsetOptimizer": bc.SubsetOptimizer,
    "TransferOptimizer": bc.TransferOptimizer,
}


def _asks(name: str, seed: int, device: str) -> list[int]:
    """Count the waits of each ask after some evaluations were told."""
    optimizer, counts = _optimizer(name, seed, device), []
    for _ in range(2 * _EVALUATIONS):
        with counting(device) as count:
            asked = optimizer.ask()
            counts.append(count())
        if name == "CurveOptimizer":
            steps = range(asked.since + 1, asked.until + 1)
            rising = [(1 - 0.5**step) * reward(asked.config) for step in steps]
            optimizer.tell(asked, rising, cost=1.0)
        elif name == "SubsetOptimizer":
            optimizer.tell(asked, reward(asked.config), cost=asked.fidelities["fraction"])
        else:
            optimizer.tell(asked, reward(asked.config))
    return counts[_EVALUATIONS:]


def _optimizer(name: str, seed: int, device: str) -> Any:
    space, make = cube(2), _OPTIMIZERS[name]
    if name == "TransferOptimizer":
        configs = [space.decode(point) for point in space.sample(9, torch.Generator())]
        task = bc.Task(configs, [reward(config) for config in configs])
        return make(space, [task, task], seed=seed, device=device)
    most = {"CurveOptimizer": (_LONGEST,), "SubsetOptimizer": ()}[name]
    return make(space, *most, seed=seed, device=device)


def describe(row: Row) -> str:
    """Return a row in words."""
    return (
        f"{row['of']}: waits {row['waits']:g} times in the median, {row['most']} at most"
        f" ({row['device']}, counted {row['times']} times)"
    )
