"""Table A1: regret and queries of bandits on arms that drift, beside the printed numbers.

Every policy meets equal noise, coins and luck in a trial. Rows are stored in blocks of trials as they
come; a run that is cut short goes on where it stopped, and a longer one keeps what is there.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.bandits.policies import (
    CE,
    FITTED,
    FORGETTING,
    FULL,
    LOWER_KAPPA,
    PRICES,
    priced,
    rows,
)
from benchmarks.harness.command_line import seeds_of
from benchmarks.harness.figures import new_figure, save
from benchmarks.harness.record import Row
from benchmarks.harness.statistics import Estimate, paired_ratio
from benchmarks.harness.sweep import measured, sweep_parser
from benchmarks.priced.comparison import Outcome
from botorch_costly.bandits import BanditPlayer
from botorch_costly.bandits.simulate import draw_for_arms
from botorch_costly.plotting.style import CYCLE
from botorch_costly.problems import DriftingArms
from botorch_costly.simulation import drive

BLOCK = 50  # trials of a task: many learn together
POINTS = 100  # of the curve of running regret
SEED = 20  # of all draws


class Task(NamedTuple):
    """Some trials of a policy on every problem."""

    row: str
    variant: str
    horizon: int
    first: int
    trials: int


def tasks(seeds: range, horizon: int, match: Sequence[str] = ("",)) -> list[Task]:
    """Return what makes the table: blocks of trials, so that all rows grow alike."""
    blocks = [range(i, min(i + BLOCK, seeds.stop)) for i in range(seeds.start, seeds.stop, BLOCK)]
    return [
        Task(row, variant, horizon, block.start, len(block))
        for block in blocks
        for row, variants in rows().items()
        for variant in variants
        if any(word in row for word in match)
    ]


def work(task: Task) -> Row:
    """Return what the trials of a task paid, of all problems side by side in one program."""
    policy = rows()[task.row][task.variant]
    start = time.perf_counter()
    problems = [DriftingArms(kind) for kind in PROBLEMS]
    numbers = range(task.first, task.first + task.trials)
    chance = draw_for_arms(problems[0].noise, numbers, task.horizon, SEED)
    curves = [problem.values(task.horizon).expand(task.trials, -1, -1) for problem in problems]
    values = torch.cat(curves)
    player = BanditPlayer(policy, len(values), values.shape[-1], task.horizon)
    noise, coins, luck = (part.repeat(len(PROBLEMS), 1) for part in chance)
    course = drive(player, values, noise, coins, luck)
    regret = (values.amax(-1) - course.value).split(task.trials)
    queries = course.query.split(task.trials)
    found = {
        kind: _paid(*both)
        for kind, both in zip(PROBLEMS, zip(regret, queries, strict=True), strict=True)
    }
    return {**task._asdict(), **found, "seconds": round(time.perf_counter() - start, 1)}


def _paid(
    regret: Tensor,  # shape: (trials, horizon)
    query: Tensor,  # bool, shape: (trials, horizon)
) -> dict[str, list[float]]:
    """Return regret and queries by trial, and the average regret so far at some rounds."""
    horizon = regret.shape[-1]
    step = max(horizon // POINTS, 1)
    rounds = torch.arange(step, horizon + 1, step)
    running = regret.mean(0).cumsum(-1)[rounds - 1] / rounds
    return {
        "regret": regret.mean(-1).tolist(),
        "queries": query.sum(-1).tolist(),
        "running": running.tolist(),
    }


# Regret of a round and queries as printed (Wang et al. 2021, Table A1), in the order of the problems.
PAPER = {
    "EXP3.S": ((0.384, 201), (0.257, 200), (0.437, 201)),
    "epsilon-greedy": ((0.167, 198), (0.145, 200), (0.196, 199)),
    "softmax": ((0.132, 199), (0.159, 201), (0.256, 198)),
    "UCB1": ((0.084, 200), (0.112, 201), (0.172, 202)),
    "GP-UCB": ((0.104, 200), (0.139, 200), (0.122, 201)),
    CE: ((0.017, 52), (0.038, 53), (0.028, 52)),
}
PROBLEMS = ("sine", "bump", "steps")
_OURS = (CE, f"{CE}, {LOWER_KAPPA}", *(priced(price) for price in PRICES))
_RIVALS = (
    *("EXP3.S", "EXP3.R", "epsilon-greedy", "softmax", "UCB1"),
    *("GP-UCB", "TV-GP-UCB", f"GP-UCB, {FITTED}"),
)

Stored = Sequence[Mapping[str, Any]]


class Cell(NamedTuple):
    """A row of the table on a problem: of its variants the one with the lowest regret."""

    variant: str
    paid: Outcome
    running: list[float]


def cells(stored: Stored) -> dict[str, dict[str, Cell]]:
    """Return the cells by problem and row; trials are in order, all rows have equal ones."""
    parts: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in sorted(stored, key=lambda row: row["first"]):
        for problem in PROBLEMS:
            paid = {**row[problem], "trials": row["trials"], "horizon": row["horizon"]}
            parts.setdefault((problem, row["row"], row["variant"]), []).append(paid)
    found: dict[str, dict[str, Cell]] = {}
    for (problem, name, variant), blocks in parts.items():
        regret = [x for block in blocks for x in block["regret"]]
        queries = [x for block in blocks for x in block["queries"]]
        weights = torch.tensor([block["trials"] for block in blocks], dtype=torch.float64)
        curves = torch.tensor([block["running"] for block in blocks], dtype=torch.float64)
        running = (weights[:, None] * curves).sum(0) / weights.sum()
        cell = Cell(variant, Outcome.of(regret, queries, blocks[0]["horizon"]), running.tolist())
        other = found.setdefault(problem, {}).get(name)
        if other is None or cell.paid.regret.mean() < other.paid.regret.mean():
            found[problem][name] = cell
    return found


def text(stored: Stored) -> str:
    """Return the table, the pairs and the totals of every problem that is stored."""
    found = cells(stored)
    lines: list[str] = []
    for i, problem in enumerate(PROBLEMS):
        if problem in found:
            lines += [*_table(problem, i, found[problem]), *_pairs(found[problem]), ""]
    return "\n".join(lines)


def _table(problem: str, number: int, rows: Mapping[str, Cell]) -> list[str]:
    trials = len(next(iter(rows.values())).paid.regret)
    lines = [
        f"{problem}, {trials} trials (mean +- standard deviation over trials)",
        f"  {'row':<24}{'regret of a round':>20}{'queries':>14}   {'paper':<14}variant",
    ]
    for name, cell in rows.items():
        regret, queries = cell.paid.regret / cell.paid.horizon, cell.paid.queries
        printed = "{:.3f} / {}".format(*PAPER[name][number]) if name in PAPER else "-"
        lines.append(
            f"  {name:<24}{_spread(regret, 3):>20}{_spread(queries, 0):>14}   {printed:<14}"
            f"{cell.variant}"
        )
    return lines


def _spread(numbers: torch.Tensor, digits: int) -> str:
    deviation = numbers.std() if len(numbers) > 1 else torch.zeros(())
    return f"{float(numbers.mean()):.{digits}f} +- {float(deviation):.{digits}f}"


def _pairs(rows: Mapping[str, Cell]) -> list[str]:
    """Return our rows by the best of the rivals, and priced rows by the confidence rule of the paper."""
    if CE not in rows:
        return []
    rivals = [name for name in _RIVALS if name in rows]
    lines = []
    if rivals:
        best = min(rivals, key=lambda name: float(rows[name].paid.regret.mean()))
        theirs = rows[best].paid.cost(0.0)
        for name, cell in rows.items():
            if name not in (*rivals, FULL):
                ratio = _ratio(cell.paid.cost(0.0), theirs)
                lines.append(f"  regret of {name} / {best}: {ratio}")
    for price in PRICES:
        theirs = rows[CE].paid.cost(price)
        for name, cell in rows.items():
            if name.startswith((priced(price), f"{CE},")):
                mine = cell.paid.cost(price)
                lines.append(
                    f"  L_T({price:g}): {name} {float(mine.mean()):.1f}, {CE} "
                    f"{float(theirs.mean()):.1f}, ratio {_ratio(mine, theirs)}"
                )
    return lines


def _ratio(ours: torch.Tensor, theirs: torch.Tensor) -> str:
    """Return the ratio of two means, paired by trials, with its 95 % interval."""
    together = min(len(ours), len(theirs))
    found: Estimate | None = paired_ratio(ours[:together].tolist(), theirs[:together].tolist())
    if found is None:
        return f"{float(ours.mean() / theirs.mean()):.3f}"
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


def _look(name: str) -> dict[str, Any]:
    """Return how a row is drawn: rivals dashed and thin, ours by colour; fitted ones are dotted."""
    if name == FULL:
        return {"color": "0.5", "linestyle": ":", "linewidth": 2}
    if name in _RIVALS:
        color = CYCLE[_RIVALS.index(name.removesuffix(f", {FITTED}"))]
        style = ":" if name.endswith(FITTED) else "--"
        return {"color": color, "linestyle": style, "linewidth": 1}
    if name.endswith(FITTED):
        return {"color": CYCLE[0], "linestyle": ":", "linewidth": 2}
    ours = name.removesuffix(f", {FORGETTING}")
    style = "-" if name == ours else "-."
    return {"color": CYCLE[_OURS.index(ours)], "linestyle": style, "linewidth": 2}


def draw(stored: Stored, results: Path) -> None:
    """Draw the arms (Figure A1) above the running regret of every row (Figure A2)."""
    found = cells(stored)
    horizon = max(row["horizon"] for row in stored)
    figure = new_figure(13, 7)
    axes = figure.subplots(2, len(PROBLEMS), squeeze=False, sharex=True)
    for i, problem in enumerate(PROBLEMS):
        for k, curve in enumerate(DriftingArms(problem).values(horizon).T.tolist()):
            axes[0, i].plot(curve, color=CYCLE[k], label=f"arm {k}")
        axes[0, i].set_title(problem)
        for name, cell in found.get(problem, {}).items():
            rounds = torch.linspace(0, horizon, len(cell.running) + 1)[1:].tolist()
            axes[1, i].plot(rounds, cell.running, **_look(name), label=name)
        axes[1, i].set_xlabel("round")
        axes[1, i].set_yscale("log")
    axes[0, 0].set_ylabel("mean reward")
    axes[1, 0].set_ylabel("average regret so far")
    axes[0, 0].legend(loc="lower right", fontsize=8)
    axes[1, -1].legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), fontsize=8)
    save(figure, results / "table-a1.png")


def main(arguments: list[str]) -> None:
    """Measure what is missing, print the table and draw the pictures."""
    parser = sweep_parser("table-a1", "bandits on arms whose rewards drift", seeds=100)
    parser.add_argument("--horizon", type=int, default=2000, help="rounds of a run")
    parser.add_argument("--match", nargs="+", default=[""], help="words of the rows to measure")
    parser.add_argument("--report", action="store_true", help="only report what is stored")
    options = parser.parse_args(arguments)
    seeds = range(0) if options.report else seeds_of(options)
    stored = measured("table-a1", tasks(seeds, options.horizon, options.match), work, options)
    print(text(stored))
    draw(stored, options.results)
