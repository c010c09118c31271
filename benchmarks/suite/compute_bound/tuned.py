"""Our tuners on runs that have no compute to waste: space, horizon and start are all they are told."""

from benchmarks.harness.tuners import as_it_comes, twins
from benchmarks.suite.compute_bound.account import Account, Accounted, Config, Result
from benchmarks.suite.compute_bound.training import LongProblem
from botorch_costly import GainReward, GuardedReward, Real, Scheduled, SearchSpace, Session
from botorch_costly.plain import as_number

RATE = "learning_rate"


def by_twins(problem: LongProblem, start: Config, seed: int) -> Result:
    """Train one run under a ``TwinTuner``, whose learning rate is constant where it is not tuned."""
    return _by_twins(problem, _with_rate(problem, "constant"), start, seed)


def by_twins_scheduled(problem: LongProblem, start: Config, seed: int) -> Result:
    """Train one run under a ``TwinTuner`` that tunes the peak of a schedule: constant, then down to 0."""
    return _by_twins(problem, _with_rate(problem, "wsd"), start, seed)


def _with_rate(problem: LongProblem, base: str) -> SearchSpace:
    """Return the space of a problem with a scheduled learning rate."""
    parameters = dict(problem.space.parameters)
    rate = parameters[RATE]
    assert isinstance(rate, Real)
    return SearchSpace({**parameters, RATE: Scheduled(rate.low, rate.high, base=base)})


def _by_twins(problem: LongProblem, space: SearchSpace, start: Config, seed: int) -> Result:
    account = Account(problem.horizon)
    run = Accounted(problem, start, account).setup(seed)
    session = Session(twins(space, problem.horizon, start, seed), run)
    for decision in session:
        peak = decision.peak or decision.config
        factor = as_number(RATE, decision.config[RATE]) / as_number(RATE, peak[RATE])
        run.train_round(peak, rate_factor=factor)
        if decision.query:
            session.tell(decision, run.validate().loss)
    return account.result(run)


def online(problem: LongProblem, start: Config, seed: int) -> Result:
    """Train one run under a guarded ``OnlineTuner``, which learns from gains."""
    account = Account(problem.horizon)
    run = Accounted(problem, start, account).setup(seed)
    tuner = as_it_comes(problem.space, problem.horizon, start, seed)
    reward = GuardedReward(GainReward("loss"), run.save, run.restore)
    for _ in range(problem.horizon):
        decision = tuner.ask()
        run.train_round(decision.config)
        if decision.query:
            tuner.tell(decision, reward(run.validate().loss, decision))
    return account.result(run)
