"""Where the time of one decision after a query goes, and how far each part is from its floor.

The floor of a part is what its floating-point operations take at the measured rate of a matrix
product of the decision's own shape, plus what its operations take if each were a small one: no code
that asks for the same operations one by one can be faster by much. The decision is that of the package,
whose functions tell a watch when they are called; the sum of the parts is held against a whole one
without a watch.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from importlib import import_module
from math import prod
from statistics import median
from time import perf_counter
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.harness.clock import small_operation_us, synchronize, timed
from benchmarks.harness.decisions import RESTARTS
from benchmarks.harness.record import Row
from benchmarks.speed.decision import Case, Decision
from benchmarks.speed.problems import draw
from botorch_costly.acquisition import TimeVaryingUCB
from botorch_costly.models import StreamingGP

_aten = torch.ops.aten
WAITS = {_aten._local_scalar_dense, _aten.item, _aten.is_nonzero, _aten.nonzero}


@dataclass
class Tally:
    """What has been asked of a machine so far; bytes are those of inputs and outputs, views are free."""

    operations: int = 0
    flops: dict[torch.dtype, float] = field(default_factory=dict)
    bytes: int = 0
    waits: int = 0  # for a number of the device, or for one that a shape depends on

    @property
    def total_flops(self) -> float:
        """In any precision."""
        return sum(self.flops.values())


class Counter(TorchDispatchMode):
    """Counts what runs inside of it, for the part that is named at the time."""

    def __init__(self, part: Callable[[], str] = lambda: "") -> None:
        super().__init__()
        self._part = part
        self.tallies: dict[str, Tally] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Count an operation and let it run."""
        kwargs = kwargs or {}
        if func._overloadpacket not in WAITS:
            with self:  # in inference mode composite operations come in one piece
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        out = func(*args, **kwargs)
        if not func.is_view:
            self._count(self.tallies.setdefault(self._part(), Tally()), func, args, out)
        return out

    @staticmethod
    def _count(tally: Tally, func: Any, args: Sequence[Any], out: Any) -> None:
        given, returned = list(_tensors(args)), list(_tensors(out))
        tally.operations += 1
        tally.waits += func._overloadpacket in WAITS or (
            func._overloadpacket is _aten.index and any(t.dtype == torch.bool for t in given[1:])
        )
        tally.bytes += sum(t.numel() * t.element_size() for t in [*given, *returned])
        dtype = next((t.dtype for t in [*returned, *given] if t.is_floating_point()), None)
        if dtype is not None:
            flops = flops_of(func, given, returned)
            tally.flops[dtype] = tally.flops.get(dtype, 0.0) + flops


def flops_of(func: Any, given: Sequence[Tensor], returned: Sequence[Tensor]) -> float:
    """Return the floating-point operations of one operation, by the shapes that it met.

    A (m x k) B (k x n)             2 m k n
    L X = B, L n x n, B n x r       n^2 r          (both triangles of a Cholesky solve: twice that)
    Cholesky factor, n x n          n^3 / 3
    distances, n and m points       3 n m d
    all others                      one for each number of the larger of input and output
    """
    kind = func._overloadpacket
    if kind in (_aten.mm, _aten.bmm, _aten.mv, _aten.dot):
        inner = given[0].shape[-1]
        return 2.0 * inner * returned[0].numel()
    if kind in (_aten.addmm, _aten.baddbmm):
        return 2.0 * given[1].shape[-1] * returned[0].numel()
    if kind is _aten.linalg_solve_triangular:
        return float(given[0].shape[-1] * returned[0].numel())
    if kind in (_aten.cholesky_solve, _aten._cholesky_solve_helper):
        return 2.0 * given[1].shape[-1] * returned[0].numel()
    if kind is _aten.linalg_cholesky_ex:
        return given[0].shape[-1] * given[0].numel() / 3
    if kind is _aten._cdist_forward:
        return 3.0 * given[0].shape[-1] * returned[0].numel()
    return float(max((prod(t.shape) for t in [*given, *returned]), default=0))


def _tensors(nested: Any) -> Iterator[Tensor]:
    if isinstance(nested, Tensor):
        yield nested
    elif isinstance(nested, (list, tuple)):
        for inner in nested:
            yield from _tensors(inner)


# As modules: some of their packages export functions of the same name.
climb = import_module("botorch_costly.optim.climb")
local_optima = import_module("botorch_costly.optim.local_optima")
search = import_module("botorch_costly.ask_tell.search")
strategy = import_module("botorch_costly.tuners.online.decider")

APPEND, SEEN, STARTS = "append", "belief seen from the round", "draw starts"
EVALUATIONS, BOOKKEEPING = "evaluations of slopes", "first steps and merging"
NEWTON, MERGING, RIVAL, COMPARISON = "Newton", "mean shift", "far rival", "comparison and rule"
PARTS = (APPEND, SEEN, STARTS, EVALUATIONS, BOOKKEEPING, NEWTON, MERGING, RIVAL, COMPARISON)
WHOLE = "whole decision"
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


# What the package calls in the course of a decision, and for which part the call counts. Calls may be
# nested: the innermost one counts.
HOOKS: tuple[tuple[Any, str, str], ...] = (
    (StreamingGP, "observe", APPEND),
    (StreamingGP, "snapshot", SEEN),
    (search, "search", STARTS),
    (local_optima, "climb", BOOKKEEPING),
    (local_optima, "attempt", BOOKKEEPING),  # on a device other than a CPU
    (climb, "climb_by_newton", NEWTON),
    (local_optima, "_distinct", MERGING),
    (local_optima, "suppress_unasked", MERGING),
    (search, "far_rival", RIVAL),
    (strategy, "comparison_of", COMPARISON),
)


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Let the calls of the package inside the block tell a watch for which part they count."""

    def told(function: Callable[..., Any], part: str) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with watch.during(part):
                return function(*args, **kwargs)

        return call

    def with_gradient(self: Any, like: Tensor, *, sign: float = 1.0) -> Any:
        return told(unwatched(self, like, sign=sign), EVALUATIONS)

    unwatched = TimeVaryingUCB.with_gradient
    with ExitStack() as stack:
        for owner, name, part in HOOKS:
            stack.enter_context(patch.object(owner, name, told(getattr(owner, name), part)))
        stack.enter_context(patch.object(TimeVaryingUCB, "with_gradient", with_gradient))
        yield


def decide_by_parts(case: Case, watch: Watch) -> Decision:
    """Make our decision with a watch; what no hook counts belongs to comparison and rule."""
    decide = case.ours()
    with watching(watch), watch.during(COMPARISON):
        return decide()


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
