"""A hash of the decisions of fixed runs, to compare two versions of the code on one machine.

One line for each group of runs: its name, the number of decisions, and the beginning of a SHA-256.
Of a decision count its run, its round, the values that are played, in the order of the space, and
whether they are queried; not how things are called, nor why. So what may not change what is decided,
such as a renaming, is checked by comparing what is printed. Where it differs, ``--list FILE`` of both
versions says in which rounds: it writes the very lines that are hashed.

Equal numbers are asked for, not close ones: another processor or another torch has other hashes.
"""

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch

import botorch_costly as bc
from benchmarks.demo import methods
from benchmarks.harness.tuners import with_budget
from benchmarks.priced import frontier
from benchmarks.suite.methods import METHODS
from benchmarks.suite.problems import PROBLEMS
from benchmarks.suite.protocol import Metrics, OnlineProblem, TrainingRun
from benchmarks.suite.runner import run_online
from benchmarks.tables import table_a2
from benchmarks.tables.paper import FORGETTING_RATES
from benchmarks.tables.world import World

DIGITS = 16  # of the hash that are printed
ROUNDS = 60  # of a tuner without a network
HILL_SEED = 5  # whose top is inside: at an edge, a rule by confidence soon queries no more
DEMO_SEEDS = 5
SUITE_METHODS, SUITE_SEEDS = ("tuned", "tuned, priced"), 3
# Problems whose data come with scikit-learn.
SUITE = (
    "digits_augmentation",
    "digits_strengths",
    "digits_optimization",
    "digits_arms",
    "breast_cancer",
    "fine_tuning",
)
TABLE_TRIALS, TABLE_HORIZON = 3, 500
PRICED_TRIALS, PRICED_HORIZON, PRICED_RATES = 2, 250, (0.003, 0.01, 0.05)


class Play(NamedTuple):
    """What was decided for a round."""

    run: str
    round: int
    values: Sequence[Any]  # in the order of the space
    query: bool


# -- what the package calls things: what a renaming may touch is here ------------------------------

_MIXED: dict[str, bc.Real | bc.Integer | bc.Choice] = {
    "rate": bc.Real(1e-4, 1e-1, log=True),
    "layers": bc.Integer(1, 8),
    "policy": bc.Choice(["none", "light", "strong"]),
    "share": bc.Real(0.0, 0.6),
}
SPACES: dict[str, bc.SearchSpace] = {
    "1 real": bc.SearchSpace({"x": bc.Real(0.0, 1.0)}),
    "3 reals": bc.SearchSpace({f"x{i}": bc.Real(-1.0, 2.0) for i in range(3)}),
    "8 reals": bc.SearchSpace({f"x{i}": bc.Real(0.0, 1.0) for i in range(8)}),
    "mixed": bc.SearchSpace(_MIXED),
    "lattice": bc.SearchSpace({"width": bc.Integer(1, 12), "depth": bc.Integer(0, 9)}),
    "arms": bc.SearchSpace(
        {"policy": bc.Choice(["a", "b", "c", "d"]), "clip": bc.Choice([True, False])}
    ),
}
KINDS: dict[str, Callable[..., bc.OnlineTuner]] = {
    "as it comes": bc.OnlineTuner,
    "as published": bc.OnlineTuner.as_published,
}
RULES: dict[str, dict[str, Any]] = {
    "no rule": {},
    "confidence": {"query": bc.ConfidenceQuery(kappa=0.8)},
    "confidence bound": {"query": bc.ConfidenceBoundQuery()},
    "coin": {"query": bc.BernoulliQuery(0.4)},
    "mixed": {"query": bc.MixedQuery(lower=6, upper=30, horizon=ROUNDS)},
    "mixed hard": {"query": bc.MixedQuery(lower=12, upper=20, horizon=ROUNDS, hard=True)},
    "price": {"query": bc.PricedQuery(price=0.1)},
    "budget": {"query": with_budget(15)},
}
# Refits have all the time they want: where a cap binds, decisions depend on the clock.
EXTRAS: dict[str, dict[str, Any]] = {
    "refits": {"refit": bc.Refit(every=8, seconds=3600.0, forgetting=True)},
    "single precision": {"dtype": torch.float32},
    "capped": {"limits": bc.Limits(max_queries=12)},
}


def tune(run: str, tuner: bc.OnlineTuner, reward: Callable[[int, Any], float]) -> Iterator[Play]:
    """Yield what a tuner decides, told a reward of round and configuration where it queries."""
    for t in range(ROUNDS):
        decision = tuner.ask()
        yield Play(run, t, in_order(tuner.space, decision.config), decision.query)
        if decision.query:
            tuner.tell(decision, reward(t, decision.config))


def in_order(space: bc.SearchSpace, config: Mapping[str, Any]) -> list[Any]:
    """Return the values of a configuration in the order of its space."""
    return [config[name] for name in space.names]


def hill(space: bc.SearchSpace, seed: int) -> Callable[[int, Mapping[str, Any]], float]:
    """Return a smooth reward of round and configuration, wavy and noisy, whose top drifts."""
    generator = torch.Generator().manual_seed(seed)
    top = torch.rand(space.dim, generator=generator, dtype=torch.float64)
    way = 0.2 * torch.randn(space.dim, generator=generator, dtype=torch.float64)
    noise = 0.1 * torch.randn(ROUNDS, generator=generator, dtype=torch.float64)

    def reward(t: int, config: Mapping[str, Any]) -> float:
        away = space.encode(config) - top - way * t / ROUNDS
        waves = 0.3 * torch.cos(9 * away).mean()
        return float(waves - 4 * away.square().mean() + noise[t])

    return reward


def on_grid(run: str, world: World, policy: bc.GridPolicy) -> Iterator[Play]:
    """Yield what a policy decides in each trial of a simulation: indices of points."""
    played = world.play(policy)
    for trial, (choice, query) in enumerate(zip(played.choice, played.query, strict=True)):
        name = f"{run}, forgetting {world.truth.forgetting:g}, trial {trial}"
        for t, (index, queried) in enumerate(zip(choice.tolist(), query.tolist(), strict=True)):
            yield Play(name, t, [index], queried)


# -- networks in training --------------------------------------------------------------------------


class WatchedRun:
    """A training run that keeps a record of what was done to it."""

    def __init__(self, run: TrainingRun) -> None:
        self._run = run
        self.configs: list[Mapping[str, Any]] = []
        self.queries: set[int] = set()  # rounds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)

    def train_round(self, config: Mapping[str, Any]) -> None:
        self.configs.append(dict(config))
        self._run.train_round(config)

    def validate(self) -> Metrics:
        """Measure the network: a query at the round that was trained last."""
        self.queries.add(len(self.configs) - 1)
        return self._run.validate()


class WatchedProblem:
    """A problem whose runs are watched, by whatever method they are trained."""

    def __init__(self, problem: OnlineProblem) -> None:
        self._problem = problem
        self.runs: list[WatchedRun] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._problem, name)

    def setup(self, seed: int) -> WatchedRun:
        self.runs.append(WatchedRun(self._problem.setup(seed)))
        return self.runs[-1]


def watch(
    run: str, problem: OnlineProblem, train: Callable[[OnlineProblem], object]
) -> Iterator[Play]:
    """Yield what was decided for the one network that ``train`` trains."""
    watched = WatchedProblem(problem)
    train(cast(OnlineProblem, watched))  # everything else it has from the problem
    (done,) = watched.runs
    for t, config in enumerate(done.configs):
        yield Play(run, t, in_order(problem.space, config), t in done.queries)


# -- the groups ------------------------------------------------------------------------------------

# Runs of the demo by their first names, which the hash holds.
DEMO_METHODS: dict[str, methods.Make] = {
    "full feedback": methods.published(bc.AlwaysQuery()),
    "Bernoulli": methods.published(bc.BernoulliQuery(methods.COIN)),
    "CE-GP-UCB": methods.published(methods.CONFIDENCE, methods.MOST_QUERIES),
    "priced": methods.published(with_budget(methods.MOST_QUERIES)),
}


def demo_plays() -> Iterator[Play]:
    """Yield the tuned runs of the demo, and those of a tuner as it comes, with a guard."""
    problem = methods.PROBLEM
    for seed in range(DEMO_SEEDS):
        for method, make in DEMO_METHODS.items():
            policy = make(seed)

            def train(problem: OnlineProblem, policy: Any = policy, seed: int = seed) -> None:
                run_online(problem, policy, seed, report_every=problem.horizon)

            yield from watch(f"{method}, seed {seed}", problem, train)
        yield from suite_run(problem, "tuned", seed)


def suite_plays() -> Iterator[Play]:
    """Yield runs of the online suite."""
    for name in SUITE:
        for method in SUITE_METHODS:
            for seed in range(SUITE_SEEDS):
                yield from suite_run(PROBLEMS[name](), method, seed)


def suite_run(problem: OnlineProblem, method: str, seed: int) -> Iterator[Play]:
    """Yield a run of a method of the online suite."""
    run = f"{problem.name}, {method}, seed {seed}"
    return watch(run, problem, lambda watched: METHODS[method](watched, seed))


def table_plays() -> Iterator[Play]:
    """Yield the cells of Table A2, those with a clock that stands still included."""
    for rate in FORGETTING_RATES:
        world = World.draw(rate, TABLE_TRIALS, TABLE_HORIZON)
        for policy in table_a2.policies(rate, TABLE_HORIZON):
            yield from on_grid(policy.name, world, policy)


def priced_plays() -> Iterator[Play]:
    """Yield the grid of prices and of kappas."""
    for rate in PRICED_RATES:
        world = World.draw(rate, PRICED_TRIALS, PRICED_HORIZON, seed=frontier.FRESH_SEED)
        for family, parameter, policy in frontier.policies():
            yield from on_grid(f"{family} {parameter:g}", world, policy)


def tuner_plays() -> Iterator[Play]:
    """Yield runs of tuners without a network: every space, rule and kind, and some options."""
    some = ("3 reals", "mixed")
    cases = [(space, rule, RULES[rule]) for space in SPACES for rule in RULES]
    cases += [(space, extra, EXTRAS[extra]) for space in some for extra in EXTRAS]
    for name, what, options in cases:
        for kind, make in KINDS.items():
            tuner = make(SPACES[name], ROUNDS, **options)
            yield from tune(f"{name}, {what}, {kind}", tuner, hill(SPACES[name], HILL_SEED))


GROUPS: dict[str, Callable[[], Iterable[Play]]] = {
    "demo": demo_plays,
    "table-a2": table_plays,
    "priced": priced_plays,
    "suite": suite_plays,
    "tuner": tuner_plays,
}


# -- the hash --------------------------------------------------------------------------------------


def line_of(group: str, play: Play) -> str:
    """Return what is hashed of a decision, one line of JSON."""
    values = [text_of(value) for value in play.values]
    return json.dumps([group, play.run, int(play.round), values, bool(play.query)]) + "\n"


def text_of(value: Any) -> str:
    """Return a value as Python writes it, with all its digits."""
    plain = value if value is None or isinstance(value, str | bool | int) else float(value)
    return repr(plain)


def fingerprint(
    group: str, plays: Iterable[Play], write: Callable[[str], object] = len
) -> tuple[int, str]:
    """Return the number of decisions and the beginning of the hash of their lines."""
    found, count = hashlib.sha256(), 0
    for play in plays:
        line = line_of(group, play)
        found.update(line.encode())
        write(line)
        count += 1
    return count, found.hexdigest()[:DIGITS]


def main(arguments: list[str]) -> None:
    """Run the groups and print a line for each; what they took goes to the error stream."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks decisions",
        description="a hash of the decisions of fixed runs, to compare two versions of the code",
    )
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--list", type=Path, metavar="FILE", help="where every decision is written")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # sums are not split otherwise on another day
    kept = options.list.open("w", encoding="utf-8") if options.list else nullcontext()
    with kept as file:
        for group in options.groups:
            start = time.perf_counter()
            count, found = fingerprint(group, GROUPS[group](), file.write if file else len)
            print(f"{group:<10}{count:>8} decisions  {found}", flush=True)
            print(f"{group}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
