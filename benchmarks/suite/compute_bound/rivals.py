"""What else a user might do with a run that has no compute to waste, and with four times as much."""

from dataclasses import fields, replace

from torch import Generator

from benchmarks.harness.tuners import as_it_comes
from benchmarks.suite.augmentation import Strengths, TrivialAugment
from benchmarks.suite.compute_bound.account import (
    Account,
    Accounted,
    AccountedRun,
    Config,
    Method,
    Result,
    begin,
)
from benchmarks.suite.compute_bound.bandit import BanditPopulation
from benchmarks.suite.compute_bound.finders import find_then_cosine, narrow_then_wide
from benchmarks.suite.compute_bound.followers import adalrs, greedily
from benchmarks.suite.compute_bound.races import race, search_at_round_0
from benchmarks.suite.compute_bound.schedules import Schedule, constant, cosine, finish, wsd
from benchmarks.suite.compute_bound.training import LongProblem
from benchmarks.suite.compute_bound.works import Classes, narrower
from benchmarks.suite.population import PopulationTraining, SuccessiveHalving
from botorch_costly import GainReward, GuardedReward, Real, Scheduled, SearchSpace, Session
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.plain import as_number


def by_session(problem: LongProblem, start: Config, seed: int) -> Result:
    """Train one run in a ``Session``, which tunes the peak of a schedule: constant, then down to 0."""
    run, rate = begin(problem, start, seed), problem.rate_name
    space, parts = _scheduled(problem), (run, run.optimizer)
    session = Session(space, problem.horizon, *parts, start=start, seed=seed)
    for decision in session:
        peak = decision.peak or decision.config
        factor = as_number(rate, decision.config[rate]) / as_number(rate, peak[rate])
        run.train_round(peak, rate_factor=factor)
        if decision.query:
            session.tell(decision, run.validate().loss)
    return run.result()


def _scheduled(problem: LongProblem) -> SearchSpace:
    """Return the space of a problem with a scheduled learning rate."""
    parameters = dict(problem.space.parameters)
    rate = parameters[problem.rate_name]
    assert isinstance(rate, Real)
    return SearchSpace({**parameters, problem.rate_name: Scheduled(rate.low, rate.high)})


def online(problem: LongProblem, start: Config, seed: int) -> Result:
    """Train one run under a guarded ``OnlineTuner``, which learns from gains."""
    run = begin(problem, start, seed)
    tuner = as_it_comes(problem.space, problem.horizon, start, seed)
    reward = GuardedReward(GainReward("loss"), run.save, run.restore)
    for _ in range(problem.horizon):
        decision = tuner.ask()
        run.train_round(decision.config)
        if decision.query:
            tuner.tell(decision, reward(run.validate().loss, decision))
    return run.result()


SEVERAL = 4  # runs, or members
_DOSES = {part.name for part in fields(Strengths)}


def one_run(schedule: Schedule, optimizer: str | None = None) -> Method:
    """Return the method of one run at the start's settings, with a schedule of the learning rate.

    One of ``optimizers.OPTIMIZERS`` takes the place of the optimizer of the problem if it is named.
    """

    def method(problem: LongProblem, start: Config, seed: int) -> Result:
        if optimizer is not None:
            problem = replace(problem, optimizer=optimizer)
        run = begin(problem, start, seed)
        finish(run, start, problem.horizon, schedule)
        return run.result()

    return method


def trivially_augmented(schedule: Schedule) -> Method:
    """Return the method of one run whose pictures are altered by ``TrivialAugment``."""

    def method(problem: LongProblem, start: Config, seed: int) -> Result:
        if not isinstance(problem.work, Classes):
            raise InvalidArgumentError("problem", "one of classes of pictures", problem.name)
        work = replace(problem.work, alter=TrivialAugment())
        return one_run(schedule)(replace(problem, work=work), start, seed)

    return method


def best_of_several(schedule: Schedule) -> Method:
    """Return the method of whole runs, the start and others drawn from the space; the best is kept.

    The best has the least validation loss after its last round.
    """

    def method(problem: LongProblem, start: Config, seed: int) -> Result:
        account = Account(SEVERAL * problem.horizon)
        accounted = Accounted(problem, start, account)
        others = problem.space.sample(SEVERAL - 1, Generator().manual_seed(seed))
        ends: list[tuple[float, AccountedRun]] = []
        for config in (start, *(problem.space.decode(x) for x in others)):
            run = accounted.setup(seed)
            finish(run, config, problem.horizon, schedule)
            ends.append((run.validate().loss, run))
        return account.result(min(ends, key=lambda end: end[0])[1])

    return method


def several(rival: PopulationTraining | SuccessiveHalving) -> Method:
    """Return the method of several networks, of which the start is one."""

    def method(problem: LongProblem, start: Config, seed: int) -> Result:
        account = Account(problem.horizon * (SEVERAL if rival.full_length else 1))
        trained = rival.train(Accounted(problem, start, account), seed)
        return account.result(trained.run)

    return method


METHODS: dict[str, Method] = {
    "session": by_session,
    "online tuner": online,
    "constant": one_run(constant),
    "cosine": one_run(cosine),
    "wsd": one_run(wsd),
    "schedule-free": one_run(constant, "schedule_free"),
    "schedule-free, its own rate": one_run(constant, "schedule_free_own"),
    "prodigy": one_run(constant, "prodigy"),
    "greedy": greedily(),
    # As in the examples of Transformers
    "greedy, impatient": greedily(patience=2, factor=0.9, low=1e-7),
    "adalrs": adalrs,
    "finder, cosine": find_then_cosine,
    "narrow, then wide": narrow_then_wide,
    "trivial augment": trivially_augmented(constant),
    "trivial augment, wsd": trivially_augmented(wsd),
    "race": race,
    "all tests at round 0": search_at_round_0,
    "halving": several(SuccessiveHalving(SEVERAL)),
    "population": several(PopulationTraining(SEVERAL)),
    "bandit population": several(BanditPopulation(SEVERAL)),
    "halving, full length": several(SuccessiveHalving(4 * SEVERAL, full_length=True)),
    "population, full length": several(PopulationTraining(SEVERAL, full_length=True)),
    "bandit population, full length": several(BanditPopulation(SEVERAL, full_length=True)),
    "best of four": best_of_several(constant),
    "best of four, wsd": best_of_several(wsd),
}
"""By name. A method that is added here is measured like the others.

It starts its run by ``begin``, or several by ``Accounted`` with an ``Account`` of the rounds to train.
It trains by ``train_round``, queries by ``validate``, goes back by ``copy`` and ``load_state_dict``, and
returns ``result()`` of the run that it hands over.
"""

NEEDS = {
    "schedule-free": "schedulefree",
    "schedule-free, its own rate": "schedulefree",
    "prodigy": "prodigyopt",
}
"""The package that a method needs beyond those of the suite."""


def methods_of(problem: LongProblem) -> dict[str, Method]:
    """Return the methods that make sense for a problem.

    Augmentation is for pictures with classes, a narrow network for works whose network has a width.
    """
    augments = isinstance(problem.work, Classes) and _DOSES & set(problem.space.names)
    scales = narrower(problem.work, divisor=2) is not None
    return {
        name: method
        for name, method in METHODS.items()
        if (augments or not name.startswith("trivial augment"))
        and (scales or name != "narrow, then wide")
    }
