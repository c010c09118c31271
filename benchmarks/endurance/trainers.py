"""What a tuner takes of the time of a trainer: ``python -m benchmarks trainers``.

A convolutional network learns digits in Lightning's ``Trainer``, and a small GPT-2 learns characters in
that of Transformers, each with the callback of this package. Reported is the time within the callback,
all of its hooks together (decisions, what is told, the guard's copies), as a share of that of the fit,
and how long a round has to be for a share of one per cent. Validation is not the tuner's time. All of it
is time of one core, which is time on the clock where the machine has no other work.

It needs the extras ``lightning`` and ``transformers``.
"""

import logging
import warnings
from collections.abc import Sequence
from itertools import groupby, product, starmap
from statistics import median
from typing import NamedTuple

from benchmarks.endurance.fits import FITS
from benchmarks.harness.command_line import seeds_of
from benchmarks.harness.record import Row
from benchmarks.harness.sweep import measured, sweep_parser

NAME = "trainers"
_SHARE = 0.01  # that is aimed at


class Task(NamedTuple):
    """A fit, and the key of its row."""

    trainer: str
    steps: int
    rounds: int
    seed: int


def measure(task: Task) -> Row:
    """Return what a fit took."""
    warnings.filterwarnings("ignore")  # the trainers' own, on small machines
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    fit = FITS[task.trainer](task.steps, task.rounds, task.seed)
    return {**task._asdict(), **fit._asdict()}


def text(rows: Sequence[Row]) -> str:
    """Return one line for each trainer and length of a round, medians over seeds."""
    heads = ("round, s", "tuner, ms", "share, %", "worst, %", "1 % from, s")
    lines = [
        f"{'trainer':<13}{'steps':>6}{'seeds':>6}{'queries':>9}"
        + "".join(f"{h:>13}" for h in heads)
    ]

    def kind(row: Row) -> tuple[str, int, int]:
        return row["trainer"], row["steps"], row["rounds"]

    for (trainer, steps, rounds), group in groupby(sorted(rows, key=kind), kind):
        fits = list(group)
        shares = [100 * fit["within_processor"] / fit["processor"] for fit in fits]
        within = median(fit["within_processor"] for fit in fits) / rounds
        numbers = (
            median(fit["processor"] for fit in fits) / rounds,
            1000 * within,
            median(shares),
            max(shares),
            within / _SHARE,
        )
        queries = f"{median(fit['queries'] for fit in fits):g}/{rounds}"
        lines.append(
            f"{trainer:<13}{steps:>6}{len(fits):>6}{queries:>9}"
            + "".join(f"{number:>13.2f}" for number in numbers)
        )
    lines.append(
        "Medians over seeds, of one core: seconds of a round, milliseconds within the callback in a "
        "round, its\nshare of the fit, and how long a round has to be for one per cent."
    )
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print them."""
    about = "what a tuner takes of the time of a trainer"
    parser = sweep_parser(NAME, about, seeds=3, trainers=FITS)
    parser.add_argument("--steps", nargs="+", type=int, default=[25, 100], help="of a round")
    parser.add_argument("--rounds", type=int, default=24, help="of a fit")
    parser.set_defaults(processes=1)  # what is timed is not to wait for others
    options = parser.parse_args(arguments)
    lengths = product(options.trainers, options.steps, [options.rounds], seeds_of(options))
    print(text(measured(NAME, list(starmap(Task, lengths)), measure, options)))
