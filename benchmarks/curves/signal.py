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
from torch import Tensor

from benchmarks.curves.grid import on_grid
from benchmarks.curves.ours import begun, steps
from benchmarks.curves.play import play
from benchmarks.curves.tables import TABLES
from benchmarks.harness.command_line import add_seeds, parser_for, seeds_of
from benchmarks.harness.missing import measure_missing
from benchmarks.harness.record import Row, rows_of
from botorch_costly.models import CurveGP, fit_curves
from botorch_costly.problems import CurveProblem
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
    curves = _curves(problem, drawn)
    whole = curves[problem.whole[drawn]]
    compression = _fitted(problem.inputs[drawn], curves, generator)
    believed = _believed(problem, task.seed)
    row: dict[str, float] = {
        "midpoint": compression.midpoint.item(),
        "growth": compression.growth.item(),
    }
    for share, belief in zip(SHARES, believed, strict=True):
        at, end = (whole[:, round(s * _POINTS) - 1].numpy() for s in (share, 1.0))
        row[f"ranks at {share:.4g}"] = float(spearmanr(at, end).statistic)
        row[f"believed at {share:.4g}"] = belief
    return {**task._asdict(), **row}


def _curves(problem: CurveProblem, drawn: Sequence[int]) -> Tensor:
    """Return whole curves above the lowest reward; what diverged stays there."""
    curves = []
    for config in drawn:
        told = problem.advance(config, 0, int(problem.lengths[config]))
        curve = on_grid(problem, config, told.curve - problem.worst, _POINTS)
        curves.append(torch.zeros_like(curve) if told.broken else curve)
    return torch.stack(curves)


def _fitted(points: Tensor, curves: Tensor, generator: torch.Generator) -> CurveCompression:
    model = CurveGP(points, curves, compression=CurveCompression(_POINTS).double())
    fit_curves(model, restarts=_RESTARTS, generator=generator)
    return model.compression


def _believed(problem: CurveProblem, seed: int) -> list[float]:
    """Return which agreement with the end our optimizer believes in, share by share."""
    optimizer = begun(problem, seed)
    play(problem, lambda *_: steps(optimizer, problem), seed, _PAID)
    return [optimizer.early_signal(share) or 0.0 for share in SHARES]


def text(rows: Sequence[Row]) -> str:
    """Return the means over seeds, table by table."""
    heads = [f"{share:.4g}".rjust(16) for share in SHARES]
    lines = [f"{'':12}{'seeds':>6}{'midpoint':>10}{'growth':>8}" + "".join(heads)]
    for table in dict.fromkeys(row["table"] for row in rows):
        mine = [row for row in rows if row["table"] == table]

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
    parser = parser_for(NAME, "what early iterations say of the end")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--again", action="store_true", help="measure what is stored, too")
    add_seeds(parser, seeds=20)
    options = parser.parse_args(arguments)
    wanted = [Task(table, seed) for seed in seeds_of(options) for table in options.tables]
    measure_missing(NAME, wanted, measure, Task, options)
    print(text(rows_of(NAME, options.results)))
