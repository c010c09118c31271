"""Stored results beside the printed ones, and whether the claims hold.

``--markdown`` writes them to ``benchmarks/results/<name>.md``, one file for each benchmark.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness.command_line import parser_for
from benchmarks.harness.record import RESULTS, read

Rows = Sequence[Mapping[str, Any]]


class Page(NamedTuple):
    """A page of results: its title, the module that turns rows into text, and a picture.

    The function of the module is ``text``, or ``describe`` for each row, unless ``source`` names another
    one. Where the module has a function ``markdown``, that one makes the page.
    """

    title: str
    source: str  # module, perhaps with a function: ``module:function``
    picture: str | None = None

    def text(self, rows: Rows) -> str:
        """Return the rows as text."""
        path, _, name = self.source.partition(":")
        module: Any = import_module(f"benchmarks.{path}")
        if name or hasattr(module, "text"):
            return getattr(module, name or "text")(rows)
        return "\n".join(map(module.describe, rows))

    def markdown(self, rows: Rows) -> str:
        """Return the rows as Markdown."""
        module: Any = import_module(f"benchmarks.{self.source.partition(':')[0]}")
        if hasattr(module, "markdown"):
            return module.markdown(rows)
        return f"```\n{self.text(rows).rstrip()}\n```"


REPORTS: dict[str, Page] = {
    "table-a2": Page(
        "Table A2: regret and queries on drifting functions", "tables.table_a2_report"
    ),
    "table-a1": Page(
        "Table A1: bandits on arms whose rewards drift", "bandits.table_a1", "table-a1.png"
    ),
    "table-a2-loop": Page("A trial of Table A2 by a loop over models", "tables.table_a2_loop"),
    "single-precision": Page("Decisions in single precision", "tables.single_precision"),
    "figure-1": Page("Figure 1: regret against queries", "tables.figure_1", "figure-1.png"),
    "figure-a3": Page("Figure A3: one run", "tables.figure_a3", "figure-a3.png"),
    "regret-bounds": Page(
        "Regret and loss beside the bounds of the paper",
        "tables.regret_bounds",
        "regret-bounds.png",
    ),
    "priced": Page("The priced query on drifting functions", "priced.frontier"),
    "priced-budget": Page("Queries spent of a budget", "priced.frontier:budget_text"),
    "priced-arms": Page("Three arms", "priced.arms"),
    "priced-continuous": Page("The priced query in 4 and 8 dimensions", "priced.continuous"),
    "priced-misspecified": Page("The priced query on wrong beliefs", "priced.misspecified"),
    "priced-effective-horizon": Page(
        "For how long the gain of a query counts", "priced.frontier:effective_horizon_text"
    ),
    "priced-time": Page("Time of a decision under either rule", "priced.timing"),
    "online-suite": Page(
        "The online suite: small real problems", "suite.benchmark", "online-suite.png"
    ),
    "online-suite-hundred": Page("A hundred other seeds of digits_optimization", "suite.benchmark"),
    "strengths-thirty": Page("Thirty seeds of digits_strengths", "suite.benchmark"),
    "online-suite-fresh": Page("Twenty fresh seeds of digits_augmentation", "suite.benchmark"),
    "online-suite-verdicts": Page("What the diagnosis says", "suite.verdicts"),
    "online-suite-twins": Page("The online suite under twins", "suite.benchmark"),
    "short": Page("Runs that have no compute to waste", "suite.compute_bound.benchmark"),
    "short-proof": Page(
        "Compute binds: the loss still falls", "suite.compute_bound.benchmark:proof_text"
    ),
    "short-constants": Page(
        "What each constant of the twins is worth", "suite.compute_bound.constants"
    ),
    "short-lengths": Page(
        "What a session costs and gains by the length of a run", "suite.compute_bound.lengths"
    ),
    "foresight": Page(
        "Rank correlation of what is known early with the loss at the end",
        "suite.compute_bound.foresight",
    ),
    "populations": Page("Populations, and PB2 at equal compute", "populations.benchmark"),
    "ddp": Page("Decisions that ranks share", "distributed.benchmark"),
    "kills": Page("A run that is killed at random moments", "endurance.kills"),
    "trainers": Page("What a tuner takes of the time of a trainer", "endurance.trainers"),
    "validation-live": Page(
        "When to validate, on how much, and when to stop", "validation.live.report"
    ),
    "validation-live-clock": Page(
        "Validation on the real clock", "validation.live.report:clock_text"
    ),
    "boil-tabular": Page("Policies on recorded learning curves", "curves.tabular"),
    "pruners": Page("Pruners of Optuna on recorded learning curves", "curves.pruners"),
    "curves-earlier": Page("A search over trainings after earlier studies", "curves.earlier"),
    "boil-signal": Page("What early iterations say of the end", "curves.signal"),
    "boil-condition": Page(
        "Points of curves that join the data, and the condition number",
        "curves.condition",
        "boil-condition.png",
    ),
    "boil-rl": Page(
        "Policies on trainings of reinforcement learning",
        "curves.live.benchmark:live_text",
        "boil-rivals.png",
    ),
    "boil-rl-curves": Page(
        "Recorded trainings of reinforcement learning",
        "curves.live.benchmark:curves_text",
        "boil-actor-critic.png",
    ),
    "boil-cnn": Page("Policies on trainings of a convolutional network", "curves.tabular"),
    "boil-cnn-curves": Page(
        "Recorded trainings of a convolutional network", "curves.live.benchmark:curves_text"
    ),
    "boil-decay": Page("Policies on trainings whose rate falls to 0", "curves.tabular"),
    "boil-decay-curves": Page(
        "Recorded trainings whose rate falls to 0", "curves.live.benchmark:curves_text"
    ),
    "prob-min": Page("Which value is the smallest, beside millions of draws", "subsets.accuracy"),
    "svm-grid": Page("Support vector machines on parts of MNIST", "subsets.svm_grid"),
    "fabolas": Page(
        "Regret at the target against what was paid", "subsets.fabolas", "fabolas-subsets.png"
    ),
    "svm-live": Page("Support vector machines on MNIST, trained live", "subsets.live.benchmark"),
    "fabolas-networks": Page(
        "Networks on parts of CIFAR-10, trained live", "subsets.live.benchmark"
    ),
    "fabolas-time": Page("Seconds of an iteration of SubsetOptimizer", "subsets.timing"),
    "cold-belief": Page("How near a belief is to the posterior", "subsets.cold"),
    "learners": Page(
        "The best learner on all of the data, by trainings on parts of it", "learners.learners"
    ),
    "subset-noise": Page("Whether noise falls with the size of the training set", "learners.noise"),
    "entropy-search": Page("How soon the optimum is known", "information.benchmark"),
    "entropy-search-time": Page("Time of an iteration", "information.benchmark:timing_text"),
    "meta": Page("Regret after earlier tasks, and which they harm", "meta.benchmark", "meta.png"),
    "algoperf": Page("Time to a target after workloads that mislead", "meta.algoperf"),
    "advice": Page("Regret after proposals, good or hostile", "meta.advice"),
    "meta-synthetic": Page(
        "Regret, weights and share where the gaps are known",
        "meta.synthetic.benchmark",
        "meta-synthetic.png",
    ),
    "meta-weights": Page("What similar tasks weigh", "meta.weights", "meta-weights.png"),
    "meta-many": Page("Regret after ever more earlier tasks", "meta.many"),
    "meta-record": Page("Families of related tasks, evaluated once", "meta.live.pool"),
    "meta-speed": Page("Time, memory and choices of TransferOptimizer", "speed.transfer"),
    "stn": Page(
        "When to tune a self-tuning network", "training.schedule.benchmark", "stn-validation.png"
    ),
    "stn-time": Page("Time of a step of a self-tuning network", "training.schedule.timing"),
    "simclr": Page(
        "Augmentation tuned within one contrastive training",
        "training.simclr.benchmark",
        "simclr.png",
    ),
    "simclr-readout": Page(
        "Which brief readout ranks as the final one does", "training.simclr.readouts"
    ),
    "simclr-time": Page("Time of a contrastive step", "training.simclr.timing"),
    "curve-speed": Page("Time of a segment of training", "speed.trainings"),
    "streaming": Page("Time of an update and of a round", "speed.streaming"),
    "speed": Page("Time of a decision", "speed.speed", "speed.png"),
    "imports": Page("An import of the package", "speed.imports"),
    "horizon": Page("A run of a million rounds", "speed.horizon"),
    "validation": Page("When validation pays, on recorded trainings", "validation.benchmark"),
    "demo": Page("The demo", "demo.demo", "demo.png"),
    "demo-heldout": Page("The demo on held-out seeds", "demo.demo"),
}
"""Name of the stored rows to their report."""


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
    page, rows = REPORTS[name], [line["row"] for line in lines]
    picture = [f"![{page.title}]({page.picture})"] if page.picture else []
    made = "Made by `python -m benchmarks report --markdown`; [all benchmarks](../README.md)."
    measured = f"Measured {origin(lines)}."
    return "\n\n".join([f"# {page.title}", made, measured, page.markdown(rows), *picture]) + "\n"


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
