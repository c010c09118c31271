"""Which early comparison of settings foretells the end of a run? Rank correlations with the final loss.

From one state of a run with the default, settings are played on the same batches: for some rounds, then
to the end, at a constant learning rate and with one that falls to zero in the last fifth. What is known
after the first rounds, the loss as it is, after a cooldown, and of averaged weights, is held against
the test loss at the end.
"""

import argparse
import copy
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from benchmarks.harness.command_line import add_seeds, parser_for, seeds_of
from benchmarks.harness.record import Row, grouped, rows_of, write_results
from benchmarks.harness.sweep import in_processes
from benchmarks.suite.compute_bound.problems import PROBLEMS
from benchmarks.suite.compute_bound.training import LongProblem, LongRun

NAME = "foresight"
STATES = (0.0, 0.1, 0.3, 0.6)  # shares of the run
RATES = (0.1, 0.3, 1.0, 3.0, 10.0)  # multiples of the default
LENGTHS = (2, 4, 8)  # rounds before a comparison
_WAYS = ("raw", "averaged", "cooled")
_ENDS = ("constant", "late decay")
_WIDTH = 34
_APART = 0.02  # log loss; pairs that end closer are level
LATE = 0.2  # of the run, in which the learning rate falls


class Case(NamedTuple):
    """A state from which all settings of a problem are played."""

    problem: str
    share: float
    seed: int


def settings_of(problem: LongProblem) -> dict[str, dict[str, Any]]:
    """Return the settings to be compared: five learning rates, and each other number low and high."""
    found = {}
    for multiple in RATES:
        rate = problem.default[problem.rate_name] * multiple
        found[f"{problem.rate_name} x {multiple:g}"] = {**problem.default, problem.rate_name: rate}
    cube = problem.space.encode(problem.default)
    for column, name in enumerate(problem.space.names):
        if name != problem.rate_name:
            for level in (0.1, 0.9):
                point = cube.clone()
                point[column] = level
                value = problem.space.decode(point)[name]
                found[f"{name} = {value:.3g}"] = {**problem.default, name: value}
    return found


def play(case: Case) -> list[Row]:
    """Play all settings from one state; return what was known early, and how each ended."""
    problem = PROBLEMS[case.problem]()
    run = problem.setup(case.seed)
    for _ in range(round(case.share * problem.horizon)):
        run.train_round(problem.default)
    state = copy.deepcopy(run.state_dict())
    rows: list[Row] = []
    for name, config in settings_of(problem).items():
        run.load_state_dict(state)
        losses = {**_early(run, config), **_ends(run, config)}
        finite = {k: loss if math.isfinite(loss) else None for k, loss in losses.items()}
        rows.append({**case._asdict(), "setting": name, **finite})
    return rows


def _early(run: LongRun, config: Mapping[str, Any]) -> dict[str, float]:
    """Return what each comparison says, by its name; the run ends after the longest of them."""
    known: dict[str, float] = {}
    sums: dict[str, torch.Tensor] = {}
    for done in range(1, max(LENGTHS) + 1):
        run.train_round(config)
        weights = run.save()["network"]
        sums = {name: sums.get(name, 0.0) + value for name, value in weights.items()}
        if done in LENGTHS:
            known[f"raw {done}"] = run.validate().loss
            here = copy.deepcopy(run.state_dict())
            run.restore({**run.save(), "network": {n: v / done for n, v in sums.items()}})
            known[f"averaged {done}"] = run.validate().loss
            run.load_state_dict(here)
            rounds = done // 2
            for left in range(rounds, 0, -1):
                run.train_round(_slower(run, config, left / (rounds + 1)))
            known[f"cooled {done}+{done // 2}"] = run.validate().loss
            run.load_state_dict(here)
    return known


def _slower(run: LongRun, config: Mapping[str, Any], share: float) -> dict[str, Any]:
    (low, _), name = run.problem.rates, run.problem.rate_name
    return {**config, name: max(config[name] * share, low)}


def _ends(run: LongRun, config: Mapping[str, Any]) -> dict[str, float]:
    """Return the test losses at the end, of a constant learning rate and of one that falls late."""
    horizon, late = run.problem.horizon, round(LATE * run.problem.horizon)
    while run.round < horizon - late:
        run.train_round(config)
    state = copy.deepcopy(run.state_dict())
    while run.round < horizon:
        run.train_round(config)
    constant = run.test().loss
    run.load_state_dict(state)
    while run.round < horizon:
        run.train_round(_slower(run, config, (horizon - run.round) / late))
    return {"constant": constant, "late decay": run.test().loss}


def correlations(rows: Sequence[Row], end: str) -> dict[str, float]:
    """Return the rank correlation of each comparison with an end, over the settings of one state."""
    ends = [_finite(row[end]) for row in rows]
    known = {name: [_finite(row[name]) for row in rows] for name in _comparisons(rows)}
    return {name: _spearman(losses, ends) for name, losses in known.items()}


def _comparisons(rows: Sequence[Row]) -> list[str]:
    """Return the names of the comparisons that rows hold."""
    return [name for name in rows[0] if name.split()[0] in _WAYS]


def _finite(loss: float | None) -> float:
    return 1e9 if loss is None or not math.isfinite(loss) else loss


def _spearman(ours: Sequence[float], theirs: Sequence[float]) -> float:
    ranks = torch.stack([torch.tensor(v).argsort().argsort().double() for v in (ours, theirs)])
    return float(torch.corrcoef(ranks)[0, 1])


def pairs_in_order(rows: Sequence[Row], end: str, apart: float) -> dict[str, float]:
    """Return which share of pairs of settings each comparison orders as an end does.

    Pairs are of one state; those whose ends differ by less than ``apart``, in log loss, are left out.
    """
    right: dict[str, list[bool]] = {name: [] for name in _comparisons(rows)}
    for a, b in itertools.combinations(rows, 2):
        is_one_state = all(a[name] == b[name] for name in Case._fields)
        gap = math.log(_finite(a[end]) / _finite(b[end]))
        if is_one_state and gap != 0 and abs(gap) >= apart:
            for name, orders in right.items():
                orders.append((_finite(a[name]) < _finite(b[name])) == (gap < 0))
    return {name: sum(orders) / max(len(orders), 1) for name, orders in right.items()}


def text(rows: Sequence[Row]) -> str:
    """Return the mean correlations by problem, end and state, of all settings and of learning rates.

    Below are shares of pairs, over all problems.
    """
    lines = [f"{'':<{_WIDTH}}" + "".join(f"{name:>14}" for name in _comparisons(rows))]
    for problem, mine in grouped(rows, "problem").items():
        for end in _ENDS:
            lines.append(f"{problem}, {end} (seeds: {len(_seeds(mine))})")
            for share in STATES:
                here = [row for row in mine if row["share"] == share]
                lines += _lines(here, end, share, PROBLEMS[problem]().rate_name)
    for apart, which in ((0.0, "all pairs"), (_APART, f"pairs {_APART:g} apart in log loss")):
        for end in _ENDS:
            lines.append(f"share of {which} that are ordered as at the end, {end}")
            lines += _pair_lines(rows, end, apart)
    return "\n".join(lines)


def _pair_lines(rows: Sequence[Row], end: str, apart: float) -> Iterator[str]:
    for share, here in grouped(rows, "share").items():
        shares = pairs_in_order(here, end, apart).values()
        yield f"{f'  from {share:.0%}':<{_WIDTH}}" + "".join(f"{value:>14.2f}" for value in shares)


def _seeds(rows: Sequence[Row]) -> list[int]:
    return sorted({row["seed"] for row in rows})


def _lines(rows: Sequence[Row], end: str, share: float, rate: str) -> Iterator[str]:
    for only, which in (("", "all settings"), (rate, "learning rates")):
        found = [
            correlations(
                [r for r in rows if r["seed"] == seed and r["setting"].startswith(only)], end
            )
            for seed in _seeds(rows)
        ]
        if found:
            means = [sum(f[name] for f in found) / len(found) for name in found[0]]
            values = "".join(f"{mean:>+14.2f}" for mean in means)
            yield f"{f'  {which} from {share:.0%}':<{_WIDTH}}{values}"


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the table."""
    parser: argparse.ArgumentParser = parser_for(NAME, "which early comparison foretells the end")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    add_seeds(parser, seeds=1)
    options = parser.parse_args(arguments)
    seeds = seeds_of(options)
    for problem in options.problems:
        cases = [Case(problem, share, seed) for seed in seeds for share in STATES]
        found = [row for rows in in_processes(play, cases, options.processes) for row in rows]

        def stays(row: Row, problem: str = problem) -> bool:
            return row["problem"] != problem

        write_results(NAME, found, list(seeds), directory=options.results, keep=stays)
        stored = rows_of(NAME, options.results)
        print(text([row for row in stored if row["problem"] == problem]), flush=True)
