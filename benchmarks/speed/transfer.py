"""Time, memory and choices of ``TransferOptimizer``: ``python -m benchmarks meta-speed``.

Each row is a process of its own with one thread. It plays a space of three parameters after earlier tasks
of one size. An iteration is ``tell`` and the ``ask`` after it: the weights of the tasks, the target's
model, and the search for the maximum of the acquisition function. What comes before, the first ``ask``
included, is preparation.

After the run, the choices of some iterations are compared with the best of many evaluations of the same
acquisition function by DIRECT (``scipy.optimize.direct``), which has no gradient and divides the cube:
with 20,000 evaluations of a function of three variables it is an almost exhaustive search. It may not
evaluate points that the optimizer would not ask for either: those next to observations, and those that
the target alone rules out.
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from multiprocessing import get_context
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch
from botorch.test_functions import Hartmann
from scipy.optimize import direct
from torch import Generator, Tensor

import botorch_costly as bc
from benchmarks.harness.record import Row
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from benchmarks.speed.horizon import peak_memory
from botorch_costly.ask_tell import Domain
from botorch_costly.ask_tell.design import sobol
from botorch_costly.models import TaskEnsemble
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.transfer.belief import TargetData
from botorch_costly.tuners.transfer.choice import TransferStrategy
from botorch_costly.tuners.transfer.options import Robustness
from botorch_costly.tuners.transfer.weighting import Acquisition

ALIKE = 1e-6  # of the range of an acquisition function: less is the same value
_POINTS = 512  # that the range is taken from
_BESIDE = 1e-3  # of what was told nothing is asked for, as in tuners.transfer.choice


class Chosen(NamedTuple):
    """A choice, and what it was made from."""

    state: Mapping[str, Any]  # of the optimizer, before
    told: TargetData
    point: Tensor  # encoded, shape: (dim,)


class Beside(NamedTuple):
    """Choices beside DIRECT's."""

    lost: list[float]  # by which DIRECT's best is better, as shares of the range
    direct_seconds: list[float]  # that DIRECT took


def beside(
    space: SearchSpace,
    tasks: TaskEnsemble,
    robust: Robustness,
    chosen: Sequence[Chosen],
    budget: int,
) -> Beside:
    """Return what is lost by each choice, and the seconds of a search by DIRECT."""
    generator = Generator()
    chooser = TransferStrategy(Domain(space), tasks, robust, generator)
    found = Beside([], [])
    for one in chosen:
        chooser.load_state_dict(one.state)
        belief = chooser.weighting.learn(one.told)
        acquisition = chooser.weighting.acquisition(belief, generator)
        lost, seconds = _lost(space, acquisition, one, budget)
        found.lost.append(lost)
        found.direct_seconds.append(seconds)
    return found


def _lost(
    space: SearchSpace, acquisition: Acquisition, one: Chosen, budget: int
) -> tuple[float, float]:
    with torch.no_grad():
        everywhere = acquisition.at(sobol(space, _POINTS, seed=0))
        ours = float(acquisition.at(one.point.unsqueeze(0)))
    low, high = float(everywhere.min()), float(everywhere.max())
    began = time.perf_counter()
    best = best_by_direct(acquisition, one, low, budget)
    seconds = time.perf_counter() - began
    return (best - ours) / max(high - low, 1e-12), seconds


def best_by_direct(acquisition: Acquisition, one: Chosen, low: float, budget: int) -> float:
    """Return the largest of ``budget`` values, ``low`` standing for places that are not asked for."""
    point, lacking = one.point.unsqueeze(0), acquisition.lacking
    granted = 0.0 if lacking is None else max(0.0, float(lacking(point)))
    best = low

    def refused(at: Tensor) -> bool:
        near = bool((torch.cdist(at, one.told.points, p=torch.inf) <= _BESIDE).any())
        return near or (lacking is not None and float(lacking(at)) > granted)

    def loss(x: np.ndarray) -> float:
        nonlocal best
        at = torch.from_numpy(x).reshape(point.shape)
        value = low if refused(at) else float(acquisition.at(at))
        best = max(best, value)
        return -value

    cube = [(0.0, 1.0)] * point.shape[-1]
    with torch.no_grad():
        # All of the budget is spent: no tolerance ends the search before.
        direct(loss, cube, maxfun=budget, maxiter=budget, vol_tol=0.0, len_tol=0.0)
    return best


NAME = "meta-speed"
SPACE = bc.SearchSpace({name: bc.Real(0.0, 1.0) for name in ("x", "y", "z")})
SIZES = {
    "3x50": 8,
    "50x100": 8,
    "1000x100": 2,
    "10000x20": 2,
    "1x1500+19x30": 0,
    "3x50@1000": 0,
    "25x100@1000": 0,
}
"""Tasks by observations of each, and how many choices are set beside DIRECT's; joined by plus signs where
tasks of different sizes come together. Behind an at sign: evaluations that are told before, not timed."""
RULES: Mapping[str, Robustness] = {
    "RM-GP-UCB": bc.ByGaps(),
    "RM-GP-TS": bc.ByGaps(thompson=True),
    "evidence": bc.ByEvidence(),
}
_OWN = 20  # evaluations of which one is chosen by the optimizer, before those that are timed
_MARGIN, _NOISE, _AGAINST = 0.1, 0.01, 3  # most that tasks are moved by; noise; which are negated


class Cell(NamedTuple):
    """What is timed, and the key of its row."""

    size: str
    rule: str
    seed: int

    @property
    def sizes(self) -> list[int]:
        """Number of observations of each task."""
        parts = [part.split("x") for part in self.size.partition("@")[0].split("+")]
        return [int(observations) for tasks, observations in parts for _ in range(int(tasks))]

    @property
    def before(self) -> int:
        """Number of evaluations that are told before those that are timed."""
        return int(self.size.partition("@")[2] or 0)


class Played(NamedTuple):
    """A run: what its iterations took, and what its choices were made from."""

    clock: list[float]  # seconds of each iteration
    processor: list[float]
    chosen: list[Chosen]


def value_at(points: Tensor, away: Tensor | float = 0.0) -> Tensor:
    """Return Hartmann's function, moved by at most ``_MARGIN``, at points ``n x 3``; larger is better."""
    inner = _MARGIN + (1 - 2 * _MARGIN) * points + away
    return -Hartmann(3, dtype=torch.float64).evaluate_true(inner)


def earlier_tasks(cell: Cell) -> list[bc.Task]:
    """Return earlier tasks: the target shifted, every third of them negated, observed at random."""
    draws = torch.Generator().manual_seed(cell.seed)
    tasks = []
    for number, observations in enumerate(cell.sizes):
        points = torch.rand(observations, SPACE.dim, generator=draws, dtype=torch.float64)
        away = _MARGIN * (2 * torch.rand(SPACE.dim, generator=draws, dtype=torch.float64) - 1)
        noise = _NOISE * torch.randn(observations, generator=draws, dtype=torch.float64)
        sign = -1.0 if number % _AGAINST == _AGAINST - 1 else 1.0
        tasks.append(bc.Task(points, sign * value_at(points, away) + noise))
    return tasks


def measure(cell: Cell, *, evaluations: int, compared: int | None, budget: int) -> Row:
    """Return what preparation and iterations took, and how good the choices are."""
    held, tasks = peak_memory(), earlier_tasks(cell)
    robust = RULES[cell.rule]
    began = time.process_time()
    optimizer = bc.TransferOptimizer(SPACE, tasks, robust=robust, seed=cell.seed)
    first = optimizer.ask()
    prepared = time.process_time() - began
    _fill(optimizer, cell)
    played = _played(optimizer, optimizer.ask() if cell.before else first, evaluations)
    memory = peak_memory() - held
    many = SIZES.get(cell.size, 1) if compared is None else compared
    space, fitted = optimizer.space, optimizer.tasks
    directs = beside(space, fitted, robust, _spread(played.chosen, many), budget)
    return {
        **cell._asdict(),
        "evaluations": evaluations,
        "prepared": round(prepared, 3),
        "clock": [round(one, 5) for one in played.clock],
        "processor": [round(one, 5) for one in played.processor],
        "megabytes": round(memory),
        **directs._asdict(),
    }


def _fill(optimizer: bc.TransferOptimizer, cell: Cell) -> None:
    """Tell random evaluations; every twentieth is the optimizer's own choice."""
    draws = torch.Generator().manual_seed(cell.seed)
    for number, point in enumerate(SPACE.sample(cell.before, draws)):
        is_own = number % _OWN == 0
        asked = optimizer.ask() if is_own else optimizer.enqueue(SPACE.decode(point))
        optimizer.tell(asked, float(value_at(SPACE.encode(asked.config).unsqueeze(0))))


def _played(
    optimizer: bc.TransferOptimizer, asked: bc.TransferDecision, evaluations: int
) -> Played:
    """Play on from the first decision, which had no value to learn from."""
    played = Played([], [], [])
    for _ in range(evaluations):
        value = float(value_at(SPACE.encode(asked.config).unsqueeze(0)))
        state = optimizer.state_dict()
        clock, processor = time.perf_counter(), time.process_time()
        optimizer.tell(asked, value)
        asked = optimizer.ask()
        played.processor.append(time.process_time() - processor)
        played.clock.append(time.perf_counter() - clock)
        chosen = Chosen(state, _told(optimizer), SPACE.encode(asked.config))
        played.chosen.append(chosen)
    return played


def _told(optimizer: bc.TransferOptimizer) -> TargetData:
    """Return what was told, none of which failed."""
    rows = [SPACE.encode(one.config) for one in optimizer.observations]
    values = [float(one.reward or 0.0) for one in optimizer.observations]
    return TargetData(torch.stack(rows), torch.tensor(values, dtype=torch.float64))


def _spread(chosen: Sequence[Chosen], many: int) -> list[Chosen]:
    """Return some of the choices, evenly spread from the first to the last."""
    numbers = torch.linspace(0, len(chosen) - 1, min(many, len(chosen))).round().long().tolist()
    return [chosen[number] for number in numbers]


def alone(cell: Cell, **options: Any) -> Row:
    """Measure in a fresh process with one thread, whose memory is that of the row."""
    with get_context("spawn").Pool(1, torch.set_num_threads, (1,)) as pool:
        return pool.apply(measure, (cell,), options)


# -- the table ------------------------------------------------------------------------------------


_GOALS = {
    "3x50": 0.02,
    "1000x100": 1.0,
    "3x50@1000": 0.2,
    "25x100@1000": 0.2,
}  # seconds of an iteration
_WIDTHS = (15, 12, 14, 18, 18, 10, 10, 10, 14)
_HEAD = (
    "tasks",
    "rule",
    "preparation",
    "clock",
    "processor",
    "memory",
    "as good",
    "worse by",
    "DIRECT takes",
)


def text(rows: Sequence[Row]) -> str:
    """Return a line for each size and rule, and which goals are met."""
    order = list(SIZES)
    lines = [_line(_HEAD)]
    for row in sorted(rows, key=lambda row: _place(order, row["size"])):
        lines.append(_line(_cells(row)))
    lines += [
        "Preparation: tasks read and fitted, and the first ask; seconds of the processor.",
        "Iteration, tell and ask: median milliseconds of the clock and of the processor (most).",
        "Memory: MB above an idle process, at most. As good: choices whose acquisition is at least",
        "DIRECT's best, up to 1e-6 of the range; worse by: the most that is lost, as a share of it.",
        *_verdicts(rows),
    ]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    first = "".join(f"{cell:<{width}}" for cell, width in zip(cells[:2], _WIDTHS, strict=False))
    rest = zip(cells[2:], _WIDTHS[2:], strict=True)
    return first + "".join(f"{cell:>{width}}" for cell, width in rest)


def _place(order: Sequence[str], size: str) -> int:
    return order.index(size) if size in order else len(order)


def _cells(row: Row) -> tuple[str, ...]:
    lost = row["lost"]
    good = sum(one <= ALIKE for one in lost)
    return (
        row["size"],
        row["rule"],
        f"{row['prepared']:.2f} s",
        _milliseconds(row["clock"]),
        _milliseconds(row["processor"]),
        f"{row['megabytes']} MB",
        f"{good} of {len(lost)}" if lost else "",
        f"{max(0.0, *lost):.1e}" if lost else "",
        f"{median(row['direct_seconds']):.1f} s" if lost else "",
    )


def _milliseconds(seconds: Sequence[float]) -> str:
    return f"{1e3 * median(seconds):.1f} ({1e3 * max(seconds):.0f})"


def _verdicts(rows: Sequence[Row]) -> list[str]:
    """Return what was wanted, and whether it came true."""
    lines = []
    for size, most in _GOALS.items():
        of_size = [row for row in rows if row["size"] == size]
        each = {row["rule"]: median(row["clock"]) for row in of_size}
        if each:
            said = ", ".join(f"{rule} {_met(holds=each[rule] < most)}" for rule in each)
            lines.append(f"Goal: less than {1e3 * most:.0f} ms at {size}: {said}.")
    lost = [one for row in rows for one in row["lost"]]
    good = all(one <= ALIKE for one in lost)
    lines.append(f"Goal: no choice worse than DIRECT's: {_met(holds=good)}.")
    cheaper = [size for size in SIZES if _drawn_is_cheaper(rows, size)]
    lines.append(f"Goal: RM-GP-TS cheaper than RM-GP-UCB (Figure 2b): {_at(cheaper)}.")
    return lines


def _met(*, holds: bool) -> str:
    return "met" if holds else "missed"


def _at(sizes: Sequence[str]) -> str:
    return f"at {', '.join(sizes)}" if sizes else "nowhere"


def _drawn_is_cheaper(rows: Sequence[Row], size: str) -> bool:
    taken = {row["rule"]: median(row["processor"]) for row in rows if row["size"] == size}
    pair = taken.get("RM-GP-TS"), taken.get("RM-GP-UCB")
    return pair[0] is not None and pair[1] is not None and pair[0] < pair[1]


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the table."""
    about = "seconds of an iteration of TransferOptimizer, and how good it is"
    parser = sweep_parser(NAME, about, seeds=1, rules=RULES)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), help="tasks x observations")
    parser.add_argument("--evaluations", type=int, default=20, help="of the target, in a run")
    parser.add_argument("--compared", type=int, help="choices that are set beside DIRECT's")
    parser.add_argument("--budget", type=int, default=20_000, help="evaluations of DIRECT")
    parser.set_defaults(processes=1)
    options = parser.parse_args(arguments)
    numbers = {name: getattr(options, name) for name in ("evaluations", "compared", "budget")}
    wanted = tasks_of(Cell, options, options.sizes, options.rules)
    print(text(measured(NAME, wanted, partial(alone, **numbers), options)))
