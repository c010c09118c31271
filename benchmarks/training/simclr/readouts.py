"""Which brief readout is the reward: ``python -m benchmarks simclr-readout``.

Networks are trained under probabilities drawn at random, and under those of an expert, of the start and
of none; each is read out after a third, two thirds and all of the run. The brief readouts of validation
are ranked against the linear readout of the test, at each time by itself: across times all of them grow.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import mean
from typing import Any, NamedTuple

import torch

from benchmarks.harness.record import Row, grouped
from benchmarks.harness.statistics import rank_correlation
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from benchmarks.training.picture_run import CLASSES
from benchmarks.training.simclr.methods import CONSTANT
from benchmarks.training.simclr.readout import READOUTS
from benchmarks.training.simclr.recipes import CPU, Recipe, tiny
from benchmarks.training.simclr.run import SPACE, START, ContrastiveProblem, ContrastiveRun

NAME = "simclr-readout"
_TIMES = (1 / 3, 2 / 3, 1.0)  # shares of the run
_KNOWN = ("fixed 0.5", "expert", "off")


class Task(NamedTuple):
    """A network under probabilities that stay, and the key of its row."""

    recipe: str
    seed: int


def config_of(seed: int) -> Mapping[str, Any]:
    """Return the probabilities of a seed: three that are known, then drawn evenly."""
    if seed < len(_KNOWN):
        return CONSTANT[_KNOWN[seed]]
    generator = torch.Generator().manual_seed(seed)
    return SPACE.decode(SPACE.sample(1, generator)[0])


def measure(task: Task, recipe: Recipe) -> Row:
    """Train one network, all from the same split and first weights; read it out three times."""
    config, problem = config_of(task.seed), ContrastiveProblem(recipe)
    run, times = problem.setup(0), []
    for share in _TIMES:
        while run.round < round(share * problem.horizon):
            run.train_round(config)
        times.append({"round": run.round, **_read(run)})
    probabilities = [round(float(config[name]), 3) for name in START]
    return {**task._asdict(), "probabilities": probabilities, "times": times}


def _read(run: ContrastiveRun) -> dict[str, Any]:
    """Return all readouts of a network, in accuracies, losses and seconds."""
    found: dict[str, Any] = {}
    began = run.clock()
    features = run.features("validation")
    encoding = run.clock() - began
    for name, readout in READOUTS.items():
        began = run.clock()
        metrics = readout(features, CLASSES)
        seconds = encoding + run.clock() - began
        found[name] = [metrics.accuracy, metrics.loss, round(seconds, 4)]
    found["final"] = run.test().accuracy
    return found


def candidates(rows: Sequence[Row], at: int) -> Iterator[tuple[str, list[float]]]:
    """Yield each brief readout and what it said of every network at a time; losses count negative."""
    for name in READOUTS:
        read = [row["times"][at][name] for row in rows]
        yield f"{name}, accuracy", [accuracy for accuracy, _, _ in read]
        yield f"{name}, loss", [-loss for _, loss, _ in read]


def text(rows: Sequence[Row]) -> str:
    """Return Spearman's rank correlation of each brief readout with the final one, at each time."""
    lines = []
    for recipe, mine in grouped(rows, "recipe").items():
        rounds = [at["round"] for at in mine[0]["times"]]
        lines.append(
            f"{recipe}: {len(mine)} networks; rank correlation with the linear readout of the test"
        )
        heads = "".join(f"{f'round {r}':>12}" for r in rounds)
        lines.append(f"{'':<24}{heads}{'end of all':>12}{'seconds':>10}")
        ends = [row["times"][-1]["final"] for row in mine]
        for name, _ in candidates(mine, 0):
            values = [dict(candidates(mine, at))[name] for at in range(len(rounds))]
            finals = [[row["times"][at]["final"] for row in mine] for at in range(len(rounds))]
            told = [rank_correlation(v, f) for v, f in zip(values, finals, strict=True)]
            told.append(rank_correlation(values[0], ends))  # how early the end is foretold
            seconds = mean(row["times"][-1][name.partition(",")[0]][2] for row in mine)
            lines.append(f"{name:<24}" + "".join(f"{t:>12.3f}" for t in told) + f"{seconds:>10.3f}")
        lines.append(
            "end of all: the first time's readout with the final one at the end of the run"
        )
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Train, read out, store the rows and print the correlations."""
    about = "which brief readout ranks representations as the final one does"
    parser = sweep_parser(NAME, about, seeds=16)
    parser.add_argument("--smoke", action="store_true", help="the same code on tiny sizes")
    options = parser.parse_args(arguments)
    recipe = tiny(CPU) if options.smoke else CPU
    wanted = tasks_of(Task, options, [recipe.name])
    rows = measured(NAME, wanted, partial(measure, recipe=recipe), options)
    print(text([row for row in rows if row["recipe"] == recipe.name]))
