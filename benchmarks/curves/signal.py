"""What early iterations say of the end, and whether it is noticed: ``python -m benchmarks boil-signal``.

Of some whole trainings of each table, drawn at random: how well the ranks after a share of them agree
with those at the end, if they did not diverge, and where the compression puts its midpoint when it is
fitted to all. Of a run of our optimizer: which agreement it believes in after the cost of ten trainings.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

import torch
from scipy.stats import spearmanr

from benchmarks.curves.ours import begun, steps
from benchmarks.curves.play import on_grid, play
from benchmarks.curves.tables import TABLES
from benchmarks.harness.record import Row, grouped
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from botorch_costly.models import CurveGP, fit_curves
from botorch_costly.transforms import CurveCompression

NAME = "boil-signal"
SHARES = (1 / 16, 1 / 4, 1 / 2)
_TRAININGS, _POINTS = 40, 60
_PAID = 10  # means of a whole training, after which our optimizer is asked
_RESTARTS = 4


class Task(NamedTuple):
    """A table and the seed of its draws."""

    table: str
    seed: int


def measure(task: Task) -> Row:
    """Return the agreement of ranks, the learnt compression, and what our optimizer believes."""
    problem = TABLES[task.table](task.seed)
    generator = torch.Generator().manual_seed(task.seed)
    drawn = torch.randperm(len(problem), generator=generator)[:_TRAININGS].tolist()
    shown = []  # whole curves above the lowest reward; what diverged stays there
    for config in drawn:
        told = problem.advance(config, 0, int(problem.lengths[config]))
        curve = on_grid(problem, config, told.curve - problem.worst, _POINTS)
        shown.append(torch.zeros_like(curve) if told.broken else curve)
    curves = torch.stack(shown)
    whole = curves[problem.whole[drawn]]
    compression = CurveCompression(_POINTS).double()
    model = CurveGP(problem.inputs[drawn], curves, compression=compression)
    fit_curves(model, restarts=_RESTARTS, generator=generator)
    midpoint, growth = model.compression.midpoint.item(), model.compression.growth.item()
    row: dict[str, float] = {"midpoint": midpoint, "growth": growth}
    optimizer = begun(problem, task.seed)
    play(problem, lambda *_: steps(optimizer, problem), task.seed, _PAID)
    for share in SHARES:
        at, end = (whole[:, round(s * _POINTS) - 1].numpy() for s in (share, 1.0))
        row[f"ranks at {share:.4g}"] = float(spearmanr(at, end).statistic)
        row[f"believed at {share:.4g}"] = optimizer.early_signal(share) or 0.0
    return {**task._asdict(), **row}


def text(rows: Sequence[Row]) -> str:
    """Return the means over seeds, table by table."""
    heads = [f"{share:.4g}".rjust(16) for share in SHARES]
    lines = [f"{'':12}{'seeds':>6}{'midpoint':>10}{'growth':>8}" + "".join(heads)]
    for table, mine in grouped(rows, "table").items():

        def mean(name: str, mine: Sequence[Row] = mine) -> float:
            return fmean(row[name] for row in mine)

        pairs = [(mean(f"ranks at {s:.4g}"), mean(f"believed at {s:.4g}")) for s in SHARES]
        cells = "".join(f"{true:+.2f} ({belief:.2f})".rjust(16) for true, belief in pairs)
        learnt = f"{mean('midpoint'):>10.1f}{mean('growth'):>8.1f}"
        lines.append(f"{table:<12}{len(mine):>6}{learnt}{cells}")
    lines.append("Midpoints are in [-6, 6], from the beginning of a training to its end.")
    lines.append(
        "By share: rank correlation with the end; what our optimizer believes, in brackets."
    )
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the table."""
    parser = sweep_parser(NAME, "what early iterations say of the end", seeds=20, tables=TABLES)
    options = parser.parse_args(arguments)
    print(text(measured(NAME, tasks_of(Task, options, options.tables), measure, options)))
