"""What similar tasks weigh under rules that weight tasks: ``python -m benchmarks meta-weights``.

On the cart and its pole it is known which tasks begin near the target. Of the support vector machines
those data sets count as similar whose accuracies have the highest rank correlation with the target's,
over the whole grid, which no method knows. Each method plays its own run.

References:
    Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
    UAI 2022, Figure 2f.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.harness.figures import panels, save
from benchmarks.harness.record import Row, grouped
from benchmarks.harness.statistics import mean_error, rank_correlation
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from benchmarks.meta.benchmark import play
from benchmarks.meta.families import FAMILIES, Family
from benchmarks.meta.methods import METHODS
from benchmarks.meta.rivals import Policy, Setting, Weighed
from botorch_costly import plotting
from botorch_costly.models import TaskEnsemble
from botorch_costly.plotting.style import MARKERS
from botorch_costly.tuners.transfer.belief import TargetData

NAME = "meta-weights"
WEIGHING = ("RM-GP-UCB", "RGPE", "TAF")
AT = (0, 3, 5, 10, 20)  # evaluations after which shares are told
_EVERY, _NEAREST = 5, 5  # every fifth data set is a target, with so many similar ones
_TITLES = {
    "cart-pole": "cart and pole: 3 similar tasks of 11",
    "svm": "support vector machines: 5 nearest of 24",
}


class Run(NamedTuple):
    """A method on all targets of a problem, and the key of its row."""

    problem: str
    method: str
    seed: int


class Problem(NamedTuple):
    """A family, and which tasks are similar to each of its targets."""

    family: Family
    similar: Mapping[int, frozenset[int]]

    @property
    def even(self) -> float:
        """Share of the similar tasks if all weigh the same."""
        counts = map(len, self.similar.values())
        return fmean(counts) / (len(self.family.whole) - 1)


def cart_pole() -> Problem:
    """Return the cart and its pole, with three tasks of eleven that begin near the target."""
    family = FAMILIES["cart-pole"]()
    near = frozenset(k for k, name in enumerate(family.names) if name.startswith("similar"))
    return Problem(family, dict.fromkeys(family.targets, near))


def svm() -> Problem:
    """Return five data sets as targets, with the five of 24 whose ranks agree best with theirs."""
    family = FAMILIES["svm"]()
    family = family._replace(targets=family.targets[::_EVERY])
    return Problem(family, {target: _nearest(family, target) for target in family.targets})


def _nearest(family: Family, target: int) -> frozenset[int]:
    values = [study.values.tolist() for study in family.whole]
    others = [k for k in range(len(values)) if k != target]
    others.sort(key=lambda k: rank_correlation(values[k], values[target]), reverse=True)
    return frozenset(others[:_NEAREST])


PROBLEMS = {"cart-pole": cart_pole, "svm": svm}


def measure(run: Run) -> Row:
    """Return the weight of the similar tasks and of all, by target and number of evaluations."""
    family, similar = PROBLEMS[run.problem]()
    studies = family.earlier(run.seed)
    tasks = TaskEnsemble([one.points for one in studies], [one.values for one in studies]).fit()
    near, total = [], []
    for target in family.targets:
        weights: list[Tensor] = []
        method = partial(watched, name=run.method, weights=weights)
        play(method, family, tasks, target, run.seed, AT[-1] + 1)
        others = [k for k in range(tasks.count) if k != target]
        is_near = torch.tensor([k in similar[target] for k in others])
        near.append([round(float(one[is_near].sum()), 4) for one in weights])
        total.append([round(float(one.sum()), 4) for one in weights])
    return {**run._asdict(), "similar": near, "all": total}


def watched(setting: Setting, name: str, weights: list[Tensor]) -> Policy:
    """Return the policy of a method that also tells the weights of each choice."""
    policy = METHODS[name](setting)
    assert isinstance(policy, Weighed), "a method that weights tasks"

    def choose(told: TargetData) -> Tensor:
        values: Tensor = policy(told)
        weights.append(policy.weights)
        return values

    return choose


def shares(rows: Sequence[Row], at: int) -> list[float]:
    """Return what similar tasks weigh of all tasks, of each seed on average over its targets.

    Targets of which no task has any weight do not count, nor seeds without any other target.
    """
    found = []
    for row in rows:
        pairs = [
            (near[at], total[at]) for near, total in zip(row["similar"], row["all"], strict=True)
        ]
        known = [near / total for near, total in pairs if total > 0]
        found += [fmean(known)] if known else []
    return found


def text(rows: Sequence[Row]) -> str:
    """Return the shares of the similar tasks, problem by problem."""
    lines = []
    for problem, mine in grouped(rows, "problem").items():
        lines += [
            f"{_TITLES[problem]}; {len(mine[0]['similar'])} target(s)",
            f"  {'':<12}{'seeds':>6}" + "".join(f"{f'after {k}':>14}" for k in AT) + f"{'none':>8}",
        ]
        played = grouped(mine, "method")
        lines += [f"  {name:<12}{_cells(played[name])}" for name in WEIGHING if name in played]
        lines.append("")
    return "\n".join(
        [
            *lines,
            "Weight of the similar tasks by that of all tasks, mean and standard error over seeds.",
            f"None: share of targets and seeds of which no task has any weight after {AT[-1]}.",
        ]
    )


def _cells(rows: Sequence[Row]) -> str:
    cells = f"{len(rows):>6}"
    for at in AT:
        known = shares(rows, at)
        mean, error = mean_error(known) if known else (0.0, 0.0)
        cells += (f"{mean:>8.2f} ±{error:.2f}" if known else "-").rjust(14)
    none = fmean(total[AT[-1]] <= 0 for row in rows for total in row["all"])
    return f"{cells}{none:>8.2f}"


_COLORS = dict(zip(WEIGHING, (plotting.VERMILION, plotting.PURPLE, plotting.ORANGE), strict=True))


def figure_of(rows: Sequence[Row]) -> Any:
    """Return a figure of the share of the similar tasks by evaluations, with standard errors."""
    problems = [name for name in PROBLEMS if any(row["problem"] == name for row in rows)]
    count = max(1, len(problems))
    figure, axes = panels(len(problems), count, 2 + 4 * count, 3.4, sharey=True)
    for ax, problem in zip(axes.flat, problems, strict=False):
        for number, (name, color) in enumerate(_COLORS.items()):
            some = [row for row in rows if (row["problem"], row["method"]) == (problem, name)]
            known = {at: shares(some, at) for at in range(AT[-1] + 1)}
            pairs = {at: mean_error(found) for at, found in known.items() if found}
            if pairs:
                means, errors = zip(*pairs.values(), strict=True)
                marks = {
                    "marker": MARKERS[number],
                    "markersize": 4,
                    "capsize": 2,
                    "elinewidth": 0.8,
                }
                ax.errorbar(list(pairs), means, yerr=errors, color=color, label=name, **marks)
        even = PROBLEMS[problem]().even
        ax.axhline(even, color=plotting.BLACK, linestyle="--", linewidth=1, label="even weights")
        ax.set_title(_TITLES[problem], fontsize="medium")
        ax.set(ylim=(0, 1.02), xticks=range(0, AT[-1] + 1, 5))
    about = "evaluations; a marker is missing where no task has any weight"
    figure.supxlabel(about, fontsize="medium")
    axes[0, 0].set_ylabel("weight of similar tasks, of all")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", frameon=False, ncols=len(labels))
    return figure


def main(arguments: list[str]) -> None:
    """Measure, store the rows, draw the figure and print the table."""
    about = "what similar tasks weigh under rules that weight tasks"
    known = {"problems": PROBLEMS, "methods": WEIGHING}
    options = sweep_parser(NAME, about, seeds=5, **known).parse_args(arguments)
    wanted = tasks_of(Run, options, options.problems, options.methods)
    rows = measured(NAME, wanted, measure, options)
    save(figure_of(rows), options.results / f"{NAME}.png")
    print(text(rows))
