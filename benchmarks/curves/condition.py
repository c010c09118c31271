"""Points of curves that join the data, and condition numbers: ``python -m benchmarks boil-condition``.

The paper's Figures 3 and 4, and its ``T_min``: our optimizer chooses by scores, with segments of at least
three eighths of a training, on trainings of our own. After each of its decisions: the points that joined
the data since the one before, and the logarithm of the condition number of the covariance, with the fixed
noise, of those data and of all points of all curves.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.curves.live.benchmark import CURVES, recorded
from benchmarks.curves.ours import begun, steps
from benchmarks.curves.play import Steps, play
from benchmarks.harness.figures import new_figure, save
from benchmarks.harness.record import RESULTS, Row, grouped
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from botorch_costly import Compression, CurveOptimizer, plotting
from botorch_costly.models.curve import default_curve_kernel
from botorch_costly.numerics.augmentation import log_condition

NAME = "boil-condition"
TABLES = {
    "cartpole": "boil-rl",
    "cartpole, published": "boil-rl",
    "pendulum": "boil-rl",
    "pictures": "boil-cnn",
}
_DRAWN = "cartpole, published"
_PAID = 20  # means of a whole training
_SHORTEST = 3 / 8  # of a training: 300 of 800 episodes
_POINTS = 60  # of a whole curve
_WHOLE = 15  # decisions after which all points of all curves are too many


class Task(NamedTuple):
    """A table and the seed of a run."""

    table: str
    seed: int


def measure(task: Task, directory: Path = RESULTS) -> Row:
    """Return the numbers of points, and both condition numbers, after each decision of a model."""
    problem = recorded(task.table, TABLES[task.table] + CURVES, directory)
    longest = int(problem.lengths.max())
    shortest = math.ceil(_SHORTEST * longest)
    optimizer = begun(problem, task.seed, compression=Compression(), shortest=shortest)
    row: dict[str, list[Any]] = {"added": [], "rows": [], "ours": [], "whole": []}

    def policy(*_: Any) -> Steps:
        run = steps(optimizer, problem)
        ask = next(run)
        while True:
            _note(row, optimizer)
            try:
                ask = run.send((yield ask))
            except StopIteration:
                return

    play(problem, policy, task.seed, _PAID)
    return {**task._asdict(), **row}


def _note(row: dict[str, list[Any]], optimizer: CurveOptimizer) -> None:
    """Extend a row by what holds after a decision, if a model has made it."""
    state = optimizer.state_dict()["chooser"]
    if not state["fitted"]:
        return
    pairs, before = state["data"], row["rows"][-1] if row["rows"] else 0
    ends = 1 if before else sum(training.done > 0 for training in optimizer.trainings)
    row["rows"].append(len(pairs))
    row["added"].append(max(len(pairs) - before - ends, 0))
    row["ours"].append(_condition(optimizer, state["fitted"], pairs))
    if len(row["whole"]) < _WHOLE:
        row["whole"].append(_condition(optimizer, state["fitted"], _all(optimizer, pairs)))


def _all(optimizer: CurveOptimizer, data: Tensor) -> Tensor:
    """Return the data and all points of a grid on all curves, as pairs of a training and an iteration."""
    pairs = {tuple(pair) for pair in data.tolist()}
    for training in optimizer.trainings:
        at = {point * training.length // _POINTS for point in range(1, _POINTS + 1)}
        pairs |= {
            (training.number, iteration) for iteration in at if 0 < iteration <= training.done
        }
    return torch.tensor(sorted(pairs))


def _condition(optimizer: CurveOptimizer, fitted: Mapping[str, Tensor], pairs: Tensor) -> float:
    """Return the logarithm of the condition number of such points under the fitted kernel."""
    of = {training.number: training for training in optimizer.trainings}
    inputs = torch.stack(
        [
            torch.cat([of[int(number)].point, pairs.new_tensor([at / of[int(number)].length])])
            for number, at in pairs.tolist()
        ]
    ).double()
    kernel = default_curve_kernel(inputs.shape[-1]).double()
    start = "covar_module."
    values = {name.removeprefix(start): v for name, v in fitted.items() if name.startswith(start)}
    kernel.load_state_dict(values, strict=False)
    with torch.no_grad():
        return round(float(log_condition(kernel(inputs).to_dense())), 2)


def text(rows: Sequence[Row]) -> str:
    """Return the means over seeds after the first, fifth, .. decision of a model."""
    shown = (1, 2, 3, 5, 7, 10, 15, 20, 30)
    lines = [f"{'':42}{'seeds':>6}" + "".join(f"{step:>8}" for step in shown)]
    words = {
        "added": "points that join",
        "rows": "points of the data",
        "ours": "ln cond, our points",
        "whole": "ln cond, whole curves",
    }
    for table, mine in grouped(rows, "table").items():
        for name, what in words.items():
            cells = []
            for step in shown:
                values = [row[name][step - 1] for row in mine if len(row[name]) >= step]
                enough = 2 * len(values) >= len(mine)
                cells.append(f"{fmean(values):.1f}".rjust(8) if enough else " " * 8)
            lines.append(f"{f'{table}, {what}':<42}{len(mine):>6}" + "".join(cells))
    lines.append("Means over the seeds whose run has so many decisions, if at least half of them.")
    return "\n".join(lines)


def picture(rows: Sequence[Row]) -> Any:
    """Return a figure of both: condition numbers as in Figure 3, and points as in Figure 4."""
    figure = new_figure(9, 3.4)
    left, right = figure.subplots(1, 2)
    mine = [row for row in rows if row["table"] == _DRAWN]
    _lines(left, [row["whole"] for row in mine], plotting.ORANGE, "all points of all curves")
    _lines(left, [row["ours"] for row in mine], plotting.BLUE, "the points that joined")
    _lines(right, [row["added"] for row in mine], plotting.BLUE, "mean of the seeds")
    left.axhline(20, color="0.5", linestyle="--", linewidth=0.8)
    left.set_ylabel("ln of the condition number")
    right.set_ylabel("points that join the data")
    right.set_ylim(-0.5, 16.5)  # the first decision adds points of the first three curves
    for ax in (left, right):
        ax.set_xlabel("decision")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    return figure


def _lines(ax: Any, runs: Sequence[Sequence[float]], color: str, label: str) -> None:
    """Draw each run thinly, and their mean as far as half of them go."""
    for run in runs:
        ax.plot(range(1, len(run) + 1), run, color=color, linewidth=0.5, alpha=0.4)
    columns = [[run[i] for run in runs if len(run) > i] for i in range(max(map(len, runs)))]
    means = [fmean(column) for column in columns if 2 * len(column) >= len(runs)]
    ax.plot(range(1, len(means) + 1), means, color=color, linewidth=2.5, label=label)


def main(arguments: list[str]) -> None:
    """Measure, store the rows, print the table and draw the picture."""
    about = "points of a curve that join the data, and the condition number"
    parser = sweep_parser(NAME, about, seeds=10, tables=TABLES)
    options = parser.parse_args(arguments)
    rows = measured(NAME, tasks_of(Task, options, options.tables), measure, options)
    print(text(rows))
    save(picture(rows), options.results / f"{NAME}.png")
