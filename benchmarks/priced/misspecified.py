"""What the priced query loses where its model is wrong, and what the confidence rule loses.

The model believes the setting of Table A2: Matérn-3/2 with lengthscale 0.2, forgetting rate 0.01, noise
variance 0.01. Either it believes something else of functions drawn from that, or the functions are
others: of another kernel, turning round in a circle, or changing all at once. ``L_T = R_T + price * C_T``
as in ``continuous``; the threshold of the confidence rule is chosen in hindsight for each scenario and
price, the priced query is told the price and nothing else.

Three parts: ``grid``, many trials on a grid; and two with ``OnlineTuner`` on the functions of such a grid
with straight lines between its points, ``fixed`` with what it believes, ``learned`` with refits of
lengthscale, variance, noise and forgetting rate that start from what it believes.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.harness.command_line import parser_for
from benchmarks.harness.record import Row, replacing, rows_of, told, write_results
from benchmarks.harness.sweep import in_processes
from benchmarks.harness.tuners import believing
from benchmarks.priced.comparison import Outcome, compare
from benchmarks.priced.continuous import confident, play, priced
from botorch_costly import OnlineTuner, QueryRule, Real, SearchSpace
from botorch_costly.acquisition import LogBeta
from botorch_costly.problems import DriftingFunction
from botorch_costly.simulation import Draws, GridPolicy, play as play_on_grid

PRICES = (0.3, 1.0)
NAME = "priced-misspecified"
KAPPAS = {"grid": (0.6, 0.7, 0.8, 0.9, 0.95), "fixed": (0.8, 0.9), "learned": (0.8, 0.9)}
PERIOD, STAND = 200, 125  # rounds of a turn, and between two abrupt changes
Parts = dict[str, dict[str, dict[str, Outcome]]]  # by part, scenario and policy
_REFIT_EVERY = 15


class Setting(NamedTuple):
    """A drifting function, as it is or as it is believed to be."""

    lengthscale: float = 0.2
    forgetting: float = 0.01
    noise: float = 0.01
    family: str = "matern32"

    def on(self, points: int) -> DriftingFunction:
        """Return it on a grid over [0, 1]."""
        options = self.forgetting, self.noise, self.lengthscale, self.family
        return DriftingFunction.on_unit_interval(points, *options)


class Scenario(NamedTuple):
    """What is true, how it changes ("forgets", "turns" or "jumps"), and what the model believes."""

    truth: Setting = Setting()
    change: str = "forgets"
    belief: Setting = Setting()


SCENARIOS: dict[str, Scenario] = {
    "matched": Scenario(),
    "lengthscale believed half": Scenario(belief=Setting(lengthscale=0.1)),
    "lengthscale believed double": Scenario(belief=Setting(lengthscale=0.4)),
    "forgetting believed triple": Scenario(belief=Setting(forgetting=0.03)),
    "forgetting believed a third": Scenario(belief=Setting(forgetting=0.01 / 3)),
    "noise believed triple": Scenario(belief=Setting(noise=0.03)),
    "noise believed a third": Scenario(belief=Setting(noise=0.01 / 3)),
    "truth smoother (rbf)": Scenario(truth=Setting(family="rbf")),
    "truth rougher (matern12)": Scenario(truth=Setting(family="matern12")),
    "truth turns": Scenario(change="turns"),
    "truth jumps": Scenario(change="jumps"),
}


class Size(NamedTuple):
    """How many functions, how long, how fine."""

    trials: int
    horizon: int
    points: int
    seed: int


def draw(name: str, size: Size) -> tuple[Tensor, Tensor]:
    """Return functions, ``trials x horizon x points``, and noise, ``trials x horizon``.

    Scenarios with equal truths have equal functions; all have equal noise.
    """
    truth, change, _ = SCENARIOS[name]
    trials, horizon, points, seed = size
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(trials, horizon, generator=generator, dtype=torch.float64)
    if change == "forgets":
        paths = truth.on(points).paths(horizon, trials, generator)
    elif change == "turns":
        ends = truth._replace(forgetting=1.0).on(points).paths(2, trials, generator)
        angle = (2 * math.pi / PERIOD * torch.arange(horizon).double()).unsqueeze(-1)
        paths = angle.cos() * ends[:, :1] + angle.sin() * ends[:, 1:]
    else:
        pieces = -(-horizon // STAND)
        stands = truth._replace(forgetting=1.0).on(points).paths(pieces, trials, generator)
        paths = stands[:, torch.arange(horizon) // STAND]
    return paths, truth.noise**0.5 * noise


class Line(NamedTuple):
    """A function on [0, 1] by its values on a grid, with straight lines in between."""

    path: Tensor  # shape: (horizon, points)

    def value(self, t: int, X: Tensor) -> Tensor:
        last = self.path.shape[-1] - 1
        place = last * X[:, 0]
        left = place.long().clamp(max=last - 1)
        return torch.lerp(self.path[t, left], self.path[t, left + 1], place - left)

    def maximum(self, t: int) -> float:
        """Return ``max f_t``, which is on the grid."""
        return float(self.path[t].max())


class Task(NamedTuple):
    """One trial of the tuner in one scenario."""

    part: str
    scenario: str
    trial: int
    size: Size


def rules(part: str) -> dict[str, QueryRule]:
    """Return the confidence rule along its thresholds and the priced query at each price."""
    return {**confident(KAPPAS[part]), **priced(PRICES)}


def on_grid(name: str, size: Size) -> Iterator[Row]:
    """Yield a row for every policy on the grid."""
    paths, noise = draw(name, size)
    belief = SCENARIOS[name].belief.on(size.points)
    coins = torch.Generator().manual_seed(size.seed + 1)
    opening = torch.randint(size.points, (size.trials,), generator=coins)
    draws = Draws(paths, noise, torch.rand(noise.shape, generator=coins), opening)
    for policy, rule in rules("grid").items():
        began = time.perf_counter()
        run = play_on_grid(belief, [GridPolicy(policy, rule)], draws).of(0)
        ms = 1000 * (time.perf_counter() - began) / (size.trials * size.horizon)
        regret, queries = run.regret.mean(-1).tolist(), run.query.sum(-1).tolist()
        what = {"part": "grid", "scenario": name, "policy": policy, "ms": round(ms, 3)}
        yield {**what, "regret": regret, "queries": queries, **size._asdict()}


def trial(task: Task) -> dict[str, dict[str, float]]:
    """Return what every policy of the tuner paid in one trial, as ``play`` does."""
    paths, noise = draw(task.scenario, task.size)
    truth, noise = Line(paths[task.trial]), noise[task.trial]
    return {
        policy: play(truth, noise, tuner_for(task, rule))
        for policy, rule in rules(task.part).items()
    }


def tuner_for(task: Task, rule: QueryRule) -> OnlineTuner:
    """Return a tuner with the beliefs of the scenario."""
    belief = SCENARIOS[task.scenario].belief
    return believing(
        SearchSpace({"x": Real(0.0, 1.0)}),
        task.size.horizon,
        rule,
        task.size.seed + task.trial,
        forgetting=belief.forgetting,
        noise=belief.noise,
        lengthscale=belief.lengthscale,
        kernel=belief.family,
        beta=LogBeta(),
        refit_every=_REFIT_EVERY if task.part == "learned" else None,
    )


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for every part, scenario and policy."""
    if "grid" in options.parts:
        for name in options.scenarios:
            size = Size(options.trials, options.horizon, options.points, options.seed)
            yield from on_grid(name, size)
    size = Size(options.tuner_trials, options.tuner_horizon, options.points, options.seed)
    tasks = [
        Task(part, name, i, size)
        for part in ("fixed", "learned")
        if part in options.parts
        for name in options.scenarios
        for i in range(size.trials)
    ]
    played = zip(tasks, in_processes(trial, tasks, options.processes), strict=True)
    for (part, name), group in groupby(played, key=lambda pair: pair[0][:2]):
        found = [paid for _, paid in group]
        for policy in rules(part):
            regret = [paid[policy]["regret"] for paid in found]
            queries = [paid[policy]["queries"] for paid in found]
            ms = round(sum(paid[policy]["ms"] for paid in found) / len(found), 3)
            what = {"part": part, "scenario": name, "policy": policy, "ms": ms}
            yield {**what, "regret": regret, "queries": queries, **size._asdict()}


def text(rows: Sequence[Row]) -> str:
    """Return the comparison in every part and scenario, and where the priced query loses."""
    lines, lost = [], []
    for part, cells in _by_part(rows).items():
        lines.append(f"{part}: regret of a round / queries of a run / L_T")
        lines.append(f"  {'scenario':<28} price  {'best confidence':<38}{'priced':<22} ratio")
        for scenario, paid in cells.items():
            for price in PRICES:
                rivals = {name: paid[name] for name in confident(KAPPAS[part])}
                ours = paid[f"priced {price:g}"]
                found = compare(ours, rivals, price)
                lines.append(
                    f"  {scenario:<28} {price:<5g}  {found.best:<17}"
                    f"{_numbers(rivals[found.best], price):<21}{_numbers(ours, price):<22}"
                    f" {found}"
                )
                if found.ratio > 1:
                    lost.append(f"  {part}, {scenario}, price {price:g}: {found}")
        lines.append("")
    return "\n".join([*lines, *learning(_by_part(rows)), "priced above the best:", *lost])


def learning(parts: Parts) -> list[str]:
    """Return what learning the hyperparameters makes of ``L_T``: learned over fixed."""
    if not {"fixed", "learned"} <= set(parts):
        return []
    lines = ["learned / fixed: L_T of each policy"]
    for scenario, fixed in parts["fixed"].items():
        for price in PRICES:
            ratios = []
            for name in (*confident(KAPPAS["fixed"]), f"priced {price:g}"):
                learned = _mean(parts["learned"][scenario][name].cost(price))
                ratios.append(f"{name} {learned / _mean(fixed[name].cost(price)):.3f}")
            lines.append(f"  {scenario:<28} {price:<5g}  {'  '.join(ratios)}")
    return [*lines, ""]


def _numbers(paid: Outcome, price: float) -> str:
    regret = _mean(paid.regret) / paid.horizon
    return f"{regret:.3f} / {_mean(paid.queries):.0f} / {_mean(paid.cost(price)):.1f}"


def _mean(values: Tensor) -> float:
    return float(values.mean())


def _by_part(rows: Iterable[Row]) -> Parts:
    parts: Parts = {}
    for row in rows:
        cells = parts.setdefault(row["part"], {}).setdefault(row["scenario"], {})
        cells[row["policy"]] = Outcome.of_row(row)
    return parts


def main(arguments: list[str]) -> None:
    """Measure every part and scenario, store the rows and print the comparison."""
    parser = parser_for(NAME, "the priced query where its model is wrong")
    add: Callable[..., object] = parser.add_argument
    add("--parts", nargs="+", choices=list(KAPPAS), default=list(KAPPAS), help="what to measure")
    add("--scenarios", nargs="+", choices=list(SCENARIOS), default=list(SCENARIOS), help="where")
    add("--trials", type=int, default=50, help="functions on the grid")
    add("--horizon", type=int, default=500, help="rounds on the grid")
    add("--tuner-trials", type=int, default=8, help="functions for the tuner")
    add("--tuner-horizon", type=int, default=200, help="rounds of the tuner")
    add("--points", type=int, default=300, help="of the grid")
    add("--processes", type=int, default=2, help="trials of the tuner side by side")
    add("--seed", type=int, default=3000, help="of functions, noise and coins")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    words = "{part}, {scenario}, {policy}: {ms} ms a round"
    found = told(rows(options), lambda row: words.format_map(row))
    stays = replacing({}, part=options.parts, scenario=options.scenarios)
    write_results(NAME, found, [options.seed], directory=options.results, keep=stays)
    print(text(rows_of(NAME, options.results)))
