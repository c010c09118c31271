"""What ``diagnose`` of both tuners says of the problems of the suite, when, and whether it is right.

A run is compared with one without tuning: the same problem, seed and start, whose configuration never
changes. For ``TwinTuner`` its learning rate falls at the end as that of the tuned run does, which is no
merit of exploring. Tuning has paid where the losses on the test rows and on the validation rows are
clearly lower and the accuracy is higher; it has not where neither loss is clearly lower. Either answer
counts as right of runs in between.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain
from typing import Any, NamedTuple

from benchmarks.harness.command_line import seeds_of
from benchmarks.harness.record import Row, grouped, rows_of, write_results
from benchmarks.harness.sweep import in_processes
from benchmarks.harness.tuners import as_it_comes
from benchmarks.suite.benchmark import suite_parser
from benchmarks.suite.data import available
from benchmarks.suite.policies import FixedPolicy, Policy, TunedPolicy
from benchmarks.suite.problems import PROBLEMS
from benchmarks.suite.training import NetworkProblem, NetworkRun
from botorch_costly import Real, Session
from botorch_costly.tuners.online.diagnosis import Diagnosis
from botorch_costly.tuners.twins.diagnosis import TwinDiagnosis

NAME = "online-suite-verdicts"
SHARES = (0.25, 0.5, 0.75, 0.9, 1.0)  # of the run, after which it is asked
CLEAR = 0.1  # nats of the log loss, about the spread between seeds
_ACCURACY = 0.01
_TOLERANCE = 0.05  # log loss
_SLOW = 1 / 30  # of the default's learning rate
_LEAST_LEVEL = -10.0  # of a network that has diverged


class Task(NamedTuple):
    """A run."""

    problem: str
    start: str
    tuner: str
    seed: int


class Asked(NamedTuple):
    """A run after some rounds, and what is said of it."""

    round: int
    run: NetworkRun
    said: Diagnosis | TwinDiagnosis | None  # of a run without tuning


def _default(problem: NetworkProblem) -> dict[str, Any] | None:
    return dict(problem.default)


def _bad(problem: NetworkProblem) -> dict[str, Any] | None:
    """Return a start with a slow learning rate, or the largest strengths; None of other spaces."""
    start, ranges = dict(problem.default), dict(problem.space.parameters)
    rate = ranges.get("learning_rate")
    if isinstance(rate, Real):
        return {**start, "learning_rate": max(rate.low, _SLOW * start["learning_rate"])}
    if problem.name == "digits_strengths":
        return {name: real.high for name, real in ranges.items() if isinstance(real, Real)}
    return None


STARTS: dict[str, Callable[[NetworkProblem], dict[str, Any] | None]] = {
    "default": _default,
    "bad": _bad,
}


def _by_policy(
    problem: NetworkProblem, seed: int, policy: Policy, diagnose: Callable[[], Diagnosis | None]
) -> Iterator[Asked]:
    run = problem.setup(seed)
    policy.start(run)
    while run.round < problem.horizon:
        decision = policy.decide()
        run.train_round(decision.config)
        if decision.query:
            policy.query(decision, run.validate())
        if run.round in _due(problem):
            yield Asked(run.round, run, diagnose())


def _online(problem: NetworkProblem, seed: int, tuned: bool) -> Iterator[Asked]:
    if not tuned:
        return _by_policy(problem, seed, FixedPolicy(problem.default), lambda: None)
    tuner = as_it_comes(problem.space, problem.horizon, problem.default, seed)
    return _by_policy(problem, seed, TunedPolicy(tuner, guarded=True), tuner.diagnose)


def _twins(problem: NetworkProblem, seed: int, tuned: bool) -> Iterator[Asked]:
    run = problem.setup(seed)
    session = Session(problem.space, problem.horizon, run, start=problem.default, seed=seed)
    if not tuned:
        session.tuner.settle()
    for number, decision in enumerate(session, 1):
        run.train_round(decision.config)
        if decision.query:
            session.tell(decision, run.validate().loss)
        if number in _due(problem):
            yield Asked(number, run, session.diagnose() if tuned else None)


TUNERS = {"OnlineTuner": _online, "TwinTuner": _twins}


def _due(problem: NetworkProblem) -> set[int]:
    return {math.ceil(share * problem.horizon) for share in SHARES}


def ask(task: Task) -> list[Row]:
    """Return what is said after each share of a run, and by how much the run is ahead of the untuned."""
    problem = PROBLEMS[task.problem]()
    start = STARTS[task.start](problem)
    assert start is not None
    problem = replace(problem, default=start)
    runs = {
        tuned: [
            (asked, _ends(asked.run)) for asked in TUNERS[task.tuner](problem, task.seed, tuned)
        ]
        for tuned in (True, False)
    }
    return [
        {**task._asdict(), "round": asked.round, **_ahead(ours, theirs), **_told(asked.said)}
        for (asked, ours), (_, theirs) in zip(runs[True], runs[False], strict=True)
    ]


def _ends(run: NetworkRun) -> dict[str, float]:
    """Return the levels and the accuracy that a run has now."""
    test, validation = run.test(), run.validate()
    levels = {"test": test.loss, "validation": validation.loss}
    found = {name: max(-math.log(loss), _LEAST_LEVEL) for name, loss in levels.items()}
    return {**found, "accuracy": test.accuracy}


def _ahead(ours: Mapping[str, float], theirs: Mapping[str, float]) -> dict[str, float]:
    return {f"{name} ahead": ours[name] - theirs[name] for name in ours}


def _told(said: Diagnosis | TwinDiagnosis | None) -> dict[str, Any]:
    assert said is not None
    verdicts: dict[str, Any] = {}
    if isinstance(said, Diagnosis):
        verdicts = {"pays": said.pays, "paid": said.has_paid}
    else:
        verdicts = {"paid": said.paid}
    plain = asdict(said).items()
    return {
        **verdicts,
        **{k: None if isinstance(v, float) and math.isnan(v) else v for k, v in plain},
    }


def truth(row: Row) -> bool | None:
    """Return whether tuning has paid by the round of a row; None of runs in between."""
    losses = [row["test ahead"], row["validation ahead"]]
    if min(losses) > CLEAR and row["accuracy ahead"] > _ACCURACY:
        return True
    return None if max(losses) > CLEAR else False


def is_right(row: Row) -> bool | None:
    """Return whether an answer is right; None where none is given: too early, or it cannot be told."""
    return None if row["paid"] is None else truth(row) in (None, row["paid"])


def holds(row: Row) -> bool | None:
    """Return whether the lead of a run of twins on the validation rows is in the range that is said.

    None if it is below the range; both ends may be off by a twentieth.
    """
    lead, least = row["validation ahead"], row["gained"]
    most = least if row["most"] is None else row["most"]
    return None if lead < least - _TOLERANCE else lead <= most + _TOLERANCE


def text(rows: Sequence[Row]) -> str:
    """Return how many of the answers given are right, by tuner, start, problem and round."""
    lines = []
    for (tuner, start), mine in grouped(rows, "tuner", "start").items():
        rounds = sorted({row["round"] for row in mine})
        title = f"{tuner}, {start} start: right after round"
        lines.append(f"{title:<46}" + "".join(f"{r:>10}" for r in rounds))
        for problem, its in [*grouped(mine, "problem").items(), ("all", mine)]:
            cells = [_right(row for row in its if row["round"] == r) for r in rounds]
            lines.append(f"  {problem:<44}" + "".join(f"{cell:>10}" for cell in cells))
        cells = [_decided(row for row in mine if row["round"] == r) for r in rounds]
        lines += [
            f"  {'runs that had paid, that had not':<44}" + "".join(f"{c:>10}" for c in cells),
            "",
        ]
    return "\n".join(lines).rstrip("\n")


def _right(rows: Iterator[Row]) -> str:
    right = [is_right(row) for row in rows]
    return f"{right.count(True)} of {len(right) - right.count(None)}"


def _decided(rows: Iterator[Row]) -> str:
    """Return how many runs had paid and how many had not."""
    found = [truth(row) for row in rows]
    return f"{found.count(True)}, {found.count(False)}"


def tasks(problems: Sequence[str], seeds: Sequence[int]) -> list[Task]:
    """Return all runs: from each start that a problem has, by each tuner."""
    return [
        Task(problem, start, tuner, seed)
        for problem in problems
        for start, config in STARTS.items()
        if config(PROBLEMS[problem]()) is not None
        for tuner in TUNERS
        for seed in seeds
    ]


def main(arguments: list[str]) -> None:
    """Run the tuners on the problems, ask them on the way, store and print what they say."""
    parser = suite_parser(
        NAME, "what the diagnoses say of small real problems, and how often rightly"
    )
    options = parser.parse_args(arguments)
    seeds = list(seeds_of(options))
    wanted = tasks(list(available(PROBLEMS, options.problems)), seeds)
    rows = chain.from_iterable(in_processes(ask, wanted, options.processes))
    write_results(NAME, rows, seeds, directory=options.results)
    print(text(rows_of(NAME, options.results)))
