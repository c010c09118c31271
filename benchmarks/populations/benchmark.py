"""Our population tuner beside Ray's PB2 at equal compute, on problems of the online suite.

All methods have as many members, decisions and rounds; validations are counted. PB2 needs ``ray[tune]``
and scikit-learn; the seeds of the rows are other ones than those that defaults were looked at with.
"""

import argparse
import copy
import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from benchmarks.harness.command_line import seeds_of
from benchmarks.harness.record import Row, grouped
from benchmarks.harness.sweep import measured, sweep_parser
from benchmarks.suite.problems import PROBLEMS
from benchmarks.suite.protocol import OnlineProblem, TrainingRun
from botorch_costly import AlwaysQuery, ConfidenceQuery, PopulationTuner, QueryRule
from botorch_costly.tuners.population.selection import replacements

_ORDER = 1000  # seeds between two runs: the members of one see the examples in different orders


class Plan(NamedTuple):
    """What the members do until they are compared again."""

    configs: Sequence[Mapping[str, Any]]
    origins: Sequence[int]  # whose weights each goes on from
    queries: Sequence[bool]


class Decider(Protocol):
    """Says what members do, and hears which losses came of it."""

    def plan(self) -> Plan:
        """Return what the members do next."""

    def hear(self, losses: Sequence[float | None]) -> None:
        """Hear the loss of each member that was queried; infinite where it diverged."""


class Ended(NamedTuple):
    """How a population ended."""

    test_accuracy: float  # of the member that is handed over, the best by validation
    test_loss: float
    queries: int
    seconds: float  # of training, queries and decisions
    deciding: float  # of these, the seconds of decisions


class Size(NamedTuple):
    """What every method pays alike."""

    members: int
    decisions: int
    rounds: int  # of a member between two decisions


def play(problem: OnlineProblem, decider: Decider, seed: int, size: Size) -> Ended:
    """Train a population; all members are queried at the end, and the best is handed over."""
    runs = [_member(problem, seed, i) for i in range(size.members)]
    queries, deciding, began = 0, 0.0, time.perf_counter()
    losses: list[float | None] = []
    for number in range(size.decisions):
        asked = time.perf_counter()
        plan = decider.plan()
        deciding += time.perf_counter() - asked
        # Give members the weights that others have now.
        moved = {m: origin for m, origin in enumerate(plan.origins) if m != origin}
        saved = {origin: copy.deepcopy(runs[origin].save()) for origin in set(moved.values())}
        for member, origin in moved.items():
            runs[member].restore(saved[origin])
        for run, config in zip(runs, plan.configs, strict=True):
            for _ in range(size.rounds):
                run.train_round(config)
        last = number == size.decisions - 1
        asked_of = [query or last for query in plan.queries]
        losses = [
            run.validate().loss if asked else None
            for run, asked in zip(runs, asked_of, strict=True)
        ]
        queries += sum(asked_of)
        told = time.perf_counter()
        decider.hear(losses)
        deciding += time.perf_counter() - told
    known = [math.inf if loss is None else loss for loss in losses]
    test = runs[known.index(min(known))].test()
    seconds = time.perf_counter() - began
    return Ended(test.accuracy, min(test.loss, 1e9), queries, seconds, deciding)


def _member(problem: OnlineProblem, seed: int, member: int) -> TrainingRun:
    """Return a member: data and first weights are those of the seed, the order of examples is its own."""
    run = problem.setup(seed)
    order = torch.Generator().manual_seed(_ORDER * (seed + 1) + member).get_state()
    run.load_state_dict({**run.state_dict(), "generator": order})
    return run


_WORST = 1e3  # a loss that is reported in place of an infinite one, which no Gaussian process fits


class _Weights(NamedTuple):
    """A checkpoint: whose weights they are."""

    member: int


class _Trial:
    """What PB2 reads of a trial; paused, as all are when they are compared."""

    def __init__(self, member: int, config: dict[str, float]) -> None:
        self.trial_id, self.config, self.status = f"member{member}", config, "PAUSED"
        self.experiment_tag, self.checkpoint = self.trial_id, _Weights(member)
        self.evaluated_params: dict[str, Any] = {}
        self.temporary_state = SimpleNamespace(saving_to=None)
        kept = SimpleNamespace(num_to_keep=None)
        manager = SimpleNamespace(checkpoint_config=kept, _latest_checkpoint_result=None)
        self.run_metadata = SimpleNamespace(checkpoint_manager=manager)

    def __str__(self) -> str:
        return self.trial_id

    def is_finished(self) -> bool:
        """All members train to the end."""
        return False

    def set_config(self, config: dict[str, float]) -> None:
        """Take over a configuration."""
        self.config = config

    def set_experiment_tag(self, tag: str) -> None:
        """Take over a name."""
        self.experiment_tag = tag


class PB2Decider:
    """A population under Ray's PB2 as it comes, but synchronous; only the cluster is a stand-in.

    ``PB2.on_trial_result`` is told what each member reports; it orders the members, has the worst quarter
    copy one of the best, and fits its Gaussian process for their configurations. Trials and controller
    are the few attributes that it reads. Configurations are columns of the unit cube, so that logarithmic
    hyperparameters are searched in the logarithm, which PB2 alone would not do; scores are minus the log
    loss, whose differences are the gains of our tuner.
    """

    def __init__(self, problem: OnlineProblem, seed: int, size: Size) -> None:
        from ray.tune.schedulers.pb2 import PB2  # an extra of this benchmark alone

        # It draws from the global generators.
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        self._space, self._names = problem.space, [f"x{i}" for i in range(problem.space.dim)]
        self._scheduler = PB2(
            time_attr="time",
            metric="score",
            mode="max",
            perturbation_interval=1,
            hyperparam_bounds={name: [0.0, 1.0] for name in self._names},
            log_config=False,
            synch=True,
        )
        generator = torch.Generator().manual_seed(seed)
        others = problem.space.sample(size.members - 1, generator)
        points = [problem.space.encode(problem.default).double(), *others]
        self._trials = [
            _Trial(i, dict(zip(self._names, x.tolist(), strict=True))) for i, x in enumerate(points)
        ]
        self._controller: Any = SimpleNamespace(
            search_alg=None, get_trials=lambda: self._trials, get_live_trials=lambda: self._trials
        )
        for trial in self._trials:
            self._scheduler.on_trial_add(self._controller, trial)
        self._time, self._origins = 0, list(range(size.members))

    def plan(self) -> Plan:
        rows = [[trial.config[name] for name in self._names] for trial in self._trials]
        points = self._space.round(torch.tensor(rows, dtype=torch.float64).clamp(0, 1))
        return Plan(
            [self._space.decode(x) for x in points], self._origins, [True for _ in self._trials]
        )

    def hear(self, losses: Sequence[float | None]) -> None:
        """Report a score for each member; the last report makes PB2 decide."""
        self._time += 1
        for member, trial in enumerate(self._trials):
            trial.checkpoint = _Weights(member)
            trial.run_metadata.checkpoint_manager._latest_checkpoint_result = None
        for trial, loss in zip(self._trials, losses, strict=True):
            finite = loss is not None and math.isfinite(loss)
            score = -math.log(loss if finite and loss else _WORST)
            result = {"time": self._time, "score": score, "training_iteration": self._time}
            self._scheduler.on_trial_result(self._controller, trial, result)
        latest = [t.run_metadata.checkpoint_manager._latest_checkpoint_result for t in self._trials]
        self._origins = [
            m if one is None else one.checkpoint.member for m, one in enumerate(latest)
        ]


class Ours:
    """``PopulationTuner``, as it comes or with another query rule."""

    def __init__(
        self, problem: OnlineProblem, seed: int, size: Size, query: QueryRule | None = None
    ) -> None:
        self.tuner = PopulationTuner(
            problem.space,
            size.decisions,
            members=size.members,
            start=problem.default,
            query=AlwaysQuery() if query is None else query,
            seed=seed,
        )

    def plan(self) -> Plan:
        self._decision = self.tuner.ask()
        return Plan(self._decision.configs, self._decision.origins, self._decision.queries)

    def hear(self, losses: Sequence[float | None]) -> None:
        self.tuner.tell(self._decision, losses)


class Unchanged:
    """Every member trains with the default, on its own: what the devices are worth without tuning."""

    def __init__(self, problem: OnlineProblem, seed: int, size: Size) -> None:
        members = range(size.members)
        self._plan = Plan(
            [problem.default for _ in members], list(members), [True for _ in members]
        )

    def plan(self) -> Plan:
        return self._plan

    def hear(self, losses: Sequence[float | None]) -> None:
        """Nothing is learnt."""


class Chance:
    """Weights are copied as by our tuner; what copies is given a random configuration."""

    def __init__(self, problem: OnlineProblem, seed: int, size: Size) -> None:
        self._space, self._members = problem.space, list(range(size.members))
        self._generator = torch.Generator().manual_seed(seed)
        others = self._space.sample(size.members - 1, self._generator)
        self._points: list[Tensor] = [self._space.encode(problem.default).double(), *others]
        self._origins = self._members

    def plan(self) -> Plan:
        configs: list[Mapping[str, Any]] = [self._space.decode(x) for x in self._points]
        return Plan(configs, self._origins, [True for _ in self._members])

    def hear(self, losses: Sequence[float | None]) -> None:
        """Let the worst go on from the best."""
        levels = {m: math.nan if x is None else -x for m, x in enumerate(losses)}
        moved = replacements(levels)
        self._origins = [moved.get(m, m) for m in self._members]
        for member in moved:
            self._points[member] = self._space.sample(1, self._generator)[0]


Maker = Callable[[OnlineProblem, int, Size], Decider]
METHODS: dict[str, Maker] = {
    "default": Unchanged,
    "random": Chance,
    "PB2": PB2Decider,
    "ours": Ours,
    "ours, confidence 0.9": partial(Ours, query=ConfidenceQuery(0.9)),
}


NAME = "populations"
_PROBLEMS = ("digits_augmentation", "fine_tuning")


class Task(NamedTuple):
    """One population, and what it pays."""

    problem: str
    method: str
    seed: int
    members: int
    decisions: int
    rounds: int


def measure(task: Task) -> Row:
    """Return how a population ended."""
    problem, size = PROBLEMS[task.problem](), Size(task.members, task.decisions, task.rounds)
    decider = METHODS[task.method](problem, task.seed, size)
    return {**task._asdict(), **play(problem, decider, task.seed, size)._asdict()}


def text(rows: Sequence[Row]) -> str:
    """Return means and standard errors by method, and what ours has more than each, paired by seed."""
    lines = []
    for problem, mine in grouped(rows, "problem").items():
        one = mine[0]
        size = f"{one['members']} members, {one['decisions']} decisions of {one['rounds']} rounds"
        lines.append(f"{problem}: {size}; test accuracy in %")
        lines.append(
            f"  {'':<22}seeds   mean  worst  loss  queries  deciding s  ours less it (s.e.)"
        )
        ours = _ends(mine, "ours")
        for method, these in grouped(mine, "method").items():
            ends = _ends(mine, method)
            numbers = [
                statistics.mean(row[k] for row in these)
                for k in ("test_loss", "queries", "deciding")
            ]
            loss, queries, deciding = numbers
            lines.append(
                f"  {method:<22}{len(ends):>5}{statistics.mean(ends.values()):>7.1f}"
                f"{min(ends.values()):>7.1f}{loss:>6.2f}{queries:>9.0f}{deciding:>12.1f}"
                f"  {_less(ours, ends)}"
            )
        lines.append("")
    return "\n".join(lines)


def _ends(rows: Sequence[Row], method: str) -> dict[int, float]:
    return {r["seed"]: 100 * r["test_accuracy"] for r in rows if r["method"] == method}


def _less(ours: dict[int, float], theirs: dict[int, float]) -> str:
    """Return the mean paired difference and its standard error, if there are several seeds."""
    apart = [ours[seed] - theirs[seed] for seed in theirs if seed in ours]
    if len(apart) < 2 or ours == theirs:
        return ""
    error = statistics.stdev(apart) / math.sqrt(len(apart))
    return f"{statistics.mean(apart):+.1f} ({error:.1f})"


def tasks(options: argparse.Namespace) -> list[Task]:
    """Return what was asked for, seed by seed."""
    size = (options.members, options.decisions, options.rounds)
    return [
        Task(problem, method, seed, *size)
        for seed in seeds_of(options)
        for problem in options.problems
        for method in options.methods
    ]


def main(arguments: list[str]) -> None:
    """Measure what is not stored yet, and print the table."""
    about = "populations tuned by one belief, beside Ray's PB2"
    parser = sweep_parser(NAME, about, seeds=5, problems=PROBLEMS, methods=METHODS)
    parser.set_defaults(problems=list(_PROBLEMS))
    parser.add_argument("--members", type=int, default=4, help="networks side by side")
    parser.add_argument("--decisions", type=int, default=12, help="comparisons of the members")
    parser.add_argument("--rounds", type=int, default=5, help="of a member between two decisions")
    parser.add_argument("--smoke", action="store_true", help="one seed and two short decisions")
    options = parser.parse_args(arguments)
    if options.smoke:
        options.seeds, options.decisions, options.rounds = 1, 2, 1
    print(text(measured(NAME, tasks(options), measure, options)))
