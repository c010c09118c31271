"""Stored results beside the printed ones, and whether the claims hold.

``--markdown`` writes them to ``benchmarks/results/<name>.md``, one file for each benchmark.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.bandits import report as bandits
from benchmarks.curves import signal, tabular
from benchmarks.curves.live import benchmark as live
from benchmarks.demo import table as demo
from benchmarks.distributed import benchmark as distributed
from benchmarks.endurance import kills, trainers
from benchmarks.harness.command_line import parser_for
from benchmarks.harness.record import RESULTS, read
from benchmarks.information import timing as information_timing
from benchmarks.information import told as information
from benchmarks.learners import learners
from benchmarks.learners import noise as subset_noise
from benchmarks.meta import benchmark as meta
from benchmarks.meta.live import benchmark as meta_live
from benchmarks.meta.synthetic import benchmark as meta_synthetic
from benchmarks.populations import benchmark as populations
from benchmarks.priced import (
    arms,
    budget,
    continuous,
    effective_horizon,
    frontier,
    misspecified,
    timing,
)
from benchmarks.speed import horizon, speed, streaming, trainings, transfer
from benchmarks.subsets import accuracy, fabolas, svm_grid
from benchmarks.subsets import timing as subset_timing
from benchmarks.subsets.live import benchmark as subsets_live
from benchmarks.suite import benchmark as suite
from benchmarks.suite import verdicts as suite_verdicts
from benchmarks.suite.compute_bound import benchmark as short
from benchmarks.suite.compute_bound import foresight
from benchmarks.tables import figure_1, figure_a3, single_precision, table_a2_loop, table_a2_report
from benchmarks.training.schedule import table as stn
from benchmarks.training.schedule import timing as stn_timing
from benchmarks.training.simclr import readouts as simclr_readouts
from benchmarks.training.simclr import table as simclr
from benchmarks.training.simclr import timing as simclr_timing

Rows = Sequence[Mapping[str, Any]]
Say = Callable[[Rows], str]


class Report(NamedTuple):
    """How the stored rows of a benchmark are told."""

    title: str
    text: Say
    markdown: Say | None = None  # the text in a block, if there is none
    picture: str | None = None


REPORTS: dict[str, Report] = {
    "table-a2": Report(
        "Table A2: regret and queries on drifting functions",
        table_a2_report.text,
        table_a2_report.markdown,
    ),
    "table-a1": Report(
        "Table A1: bandits on arms whose rewards drift", bandits.report, picture="table-a1.png"
    ),
    "table-a2-loop": Report("A trial of Table A2 by a loop over models", table_a2_loop.report),
    "single-precision": Report("Decisions in single precision", single_precision.report),
    "figure-1": Report(
        "Figure 1: regret against queries", figure_1.text, figure_1.markdown, "figure-1.png"
    ),
    "figure-a3": Report("Figure A3: one run", figure_a3.text, picture="figure-a3.png"),
    "priced": Report("The priced query on drifting functions", frontier.report),
    "priced-budget": Report("Queries spent of a budget", budget.report),
    "priced-arms": Report("Three arms", arms.report),
    "priced-continuous": Report("The priced query in 4 and 8 dimensions", continuous.text),
    "priced-misspecified": Report("The priced query on wrong beliefs", misspecified.text),
    "priced-effective-horizon": Report(
        "For how long the gain of a query counts", effective_horizon.report
    ),
    "priced-time": Report("Time of a decision under either rule", timing.report),
    "online-suite": Report(
        "The online suite: small real problems", suite.table, picture="online-suite.png"
    ),
    "online-suite-hundred": Report("A hundred other seeds of digits_optimization", suite.table),
    "strengths-thirty": Report("Thirty seeds of digits_strengths", suite.table),
    "online-suite-fresh": Report("Twenty fresh seeds of digits_augmentation", suite.table),
    "online-suite-verdicts": Report("What the diagnosis says", suite_verdicts.table),
    "online-suite-twins": Report("The online suite under twins", suite.table),
    "short": Report("Runs that have no compute to waste", short.text),
    "short-proof": Report("Compute binds: the loss still falls", short.proof_text),
    "foresight": Report(
        "Rank correlation of what is known early with the loss at the end", foresight.table
    ),
    "populations": Report("Populations, and PB2 at equal compute", populations.text),
    "ddp": Report("Decisions that ranks share", distributed.text),
    "kills": Report("A run that is killed at random moments", kills.text),
    "trainers": Report("What a tuner takes of the time of a trainer", trainers.text),
    "boil-tabular": Report("Policies on recorded learning curves", tabular.text),
    "boil-signal": Report("What early iterations say of the end", signal.text),
    "boil-rl": Report("Policies on trainings of reinforcement learning", tabular.text),
    "boil-rl-curves": Report("Recorded trainings of reinforcement learning", live.curves_text),
    "boil-cnn": Report("Policies on trainings of a convolutional network", tabular.text),
    "boil-cnn-curves": Report("Recorded trainings of a convolutional network", live.curves_text),
    "prob-min": Report("Which value is the smallest, beside millions of draws", accuracy.text),
    "svm-grid": Report("Support vector machines on parts of MNIST", svm_grid.text),
    "fabolas": Report(
        "Regret at the target against what was paid", fabolas.text, picture="fabolas-subsets.png"
    ),
    "svm-live": Report("Support vector machines on MNIST, trained live", subsets_live.text),
    "fabolas-time": Report("Seconds of an iteration of SubsetOptimizer", subset_timing.text),
    "learners": Report(
        "The best learner on all of the data, by trainings on parts of it", learners.text
    ),
    "subset-noise": Report(
        "Whether noise falls with the size of the training set", subset_noise.text
    ),
    "entropy-search": Report("How soon the optimum is known", information.text),
    "entropy-search-time": Report("Time of an iteration", information_timing.text),
    "meta": Report(
        "Regret after earlier tasks, and which they harm", meta.text, picture="meta.png"
    ),
    "meta-synthetic": Report(
        "Regret, weights and share where the gaps are known",
        meta_synthetic.text,
        picture="meta-synthetic.png",
    ),
    "meta-record": Report("Families of related tasks, evaluated once", meta_live.text),
    "meta-speed": Report("Time, memory and choices of TransferOptimizer", transfer.text),
    "stn": Report("When to tune a self-tuning network", stn.text, picture="stn-validation.png"),
    "stn-time": Report("Time of a step of a self-tuning network", stn_timing.text),
    "simclr": Report(
        "Augmentation tuned within one contrastive training", simclr.text, picture="simclr.png"
    ),
    "simclr-readout": Report(
        "Which brief readout ranks as the final one does", simclr_readouts.text
    ),
    "simclr-time": Report("Time of a contrastive step", simclr_timing.text),
    "curve-speed": Report("Time of a stretch of training", trainings.text),
    "streaming": Report("Time of an update and of a round", streaming.report),
    "speed": Report("Time of a decision", speed.report, picture="speed.png"),
    "horizon": Report("A run of a million rounds", horizon.report),
    "demo": Report("The demo", demo.format_table, picture="demo.png"),
    "demo-heldout": Report("The demo on held-out seeds", demo.format_table),
}
"""Name of the stored rows to how they are told."""


def origin(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return where and on what stored results were measured; what was added later is named, too."""
    return "; ".join(dict.fromkeys(map(_origin, lines)))


def _origin(line: Mapping[str, Any]) -> str:
    hardware, versions = line["hardware"], line["versions"]
    device = hardware["gpu"] or f"{hardware['cpu']}, {hardware['threads']} thread(s)"
    commit, plus, _ = line["commit"].partition("+")
    commit = commit[:12] + (" with uncommitted changes" if plus else "")
    days = dict.fromkeys(line[key][:10] for key in ("time", "until") if key in line)
    return (
        f"{' to '.join(days)}, commit {commit}, {device},"
        f" torch {versions['torch']}, seed {_seeds(line['seeds'])}, `{line['command']}`"
    )


def _seeds(seeds: Sequence[int]) -> str:
    """Return seeds that follow each other as a range."""
    run = list(range(seeds[0], seeds[0] + len(seeds))) if seeds else []
    many = len(seeds) > 2 and list(seeds) == run
    return f"{seeds[0]} to {seeds[-1]}" if many else ", ".join(map(str, seeds))


def markdown_of(name: str, directory: Path = RESULTS) -> str | None:
    """Return what is stored of a benchmark as a page of Markdown, None if it never ran."""
    lines = read(name, directory)
    if not lines:
        return None
    report, rows = REPORTS[name], [line["row"] for line in lines]
    if report.markdown is None:
        table = f"```\n{report.text(rows).rstrip()}\n```"
    else:
        table = report.markdown(rows)
    picture = [f"![{report.title}]({report.picture})"] if report.picture else []
    made = "Made by `python -m benchmarks report --markdown`; [all benchmarks](../README.md)."
    measured = f"Measured {origin(lines)}."
    return "\n\n".join([f"# {report.title}", made, measured, table, *picture]) + "\n"


def write_markdown(directory: Path = RESULTS) -> list[Path]:
    """Write a page for each benchmark that is stored; return the pages."""
    written = []
    for name in REPORTS:
        page = markdown_of(name, directory)
        if page is not None:
            written.append(directory / f"{name}.md")
            written[-1].write_text(page, encoding="utf-8")
    return written


def text_of(name: str, directory: Path = RESULTS) -> str:
    """Return what is stored of a benchmark as text."""
    lines = read(name, directory)
    if not lines:
        return f"Not stored; run python -m benchmarks {name}."
    return f"{origin(lines)}\n\n{REPORTS[name].text([line['row'] for line in lines])}"


def main(arguments: list[str]) -> None:
    """Print what is stored, or write it as Markdown."""
    parser = parser_for("report", "stored results beside the printed ones")
    parser.add_argument("--markdown", action="store_true", help="write RESULTS/<name>.md instead")
    options = parser.parse_args(arguments)
    if options.markdown:
        for path in write_markdown(options.results):
            print(f"Wrote {path}")
        return
    for name in REPORTS:
        print(f"== {name} ==\n{text_of(name, options.results)}\n")
