"""Settling the learning rate at the beginning: trials from the first state, all but one given back.

Trials from one state meet the same batches and the same random numbers. A trial that is kept is the
beginning of the run, the others are compute that is lost: the run is so many rounds shorter.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from benchmarks.suite.compute_bound.account import AccountedRun, Config, Result, begin
from benchmarks.suite.compute_bound.schedules import cosine, finish, with_rate, wsd
from benchmarks.suite.compute_bound.training import LongProblem

_MULTIPLES = (0.3, 1.0, 3.0, 10.0)  # of the start's learning rate
_AROUND = (3**-0.5, 1.0, 3**0.5)  # of the winner's
_MARGIN = 0.01  # nats, within which two trials are alike


class Trial(NamedTuple):
    """A setting that was tried."""

    config: Config
    loss: float  # validation, in nats
    state: dict[str, Any]  # before the cooldown


@dataclass
class Trials:
    """Trials from one state of a run."""

    problem: LongProblem  # what is trained
    run: AccountedRun  # stands at the state
    rounds: int  # of a trial
    # Rounds after it, in which the learning rate falls to 0, for the measurement alone
    cooldown: int = 0
    state: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.state = self.run.copy()

    def play(self, config: Config) -> Trial:
        """Train with a setting, measure, and go back."""
        for _ in range(self.rounds):
            self.run.train_round(config)
        kept = self.run.copy()
        for left in range(self.cooldown, 0, -1):
            self.run.train_round(config, rate_factor=left / (self.cooldown + 1))
        trial = Trial(config, in_nats(self.problem, self.run.validate().loss), kept)
        self.run.load_state_dict(self.state)
        return trial

    def settle(self, trials: Iterable[Trial]) -> Trial:
        """Go on from the trial of the least loss, and return it."""
        best = min(trials, key=lambda trial: trial.loss)
        self.run.load_state_dict(best.state)
        return best


def in_nats(problem: LongProblem, loss: float) -> float:
    """Return a loss whose differences are in nats: of squares the logarithm."""
    if problem.work.in_nats or loss == math.inf:
        return loss
    return math.log(max(loss, 1e-300))


def race(problem: LongProblem, start: Config, seed: int) -> Result:
    """Race four learning rates, then three around the winner's, 3 rounds each; then half a cosine."""
    run = begin(problem, start, seed)
    rounds = max(1, min(3, problem.horizon // 14))  # seven trials take at most half
    config = dict(start)
    for multiples in (_MULTIPLES, _AROUND):
        trials = Trials(problem, run, rounds)
        candidates = [with_rate(problem, config, multiple) for multiple in multiples]
        rates = {candidate[problem.rate_name]: candidate for candidate in candidates}
        config = dict(trials.settle([trials.play(c) for c in rates.values()]).config)
    left = run.account.limit - run.account.rounds
    finish(run, config, run.round + left, cosine, origin=run.round)
    return run.result()


def search_at_round_0(problem: LongProblem, start: Config, seed: int) -> Result:
    """Search the learning rate along a line before anything is played; then decay it late.

    By tenfold steps upwards while the loss falls, or else downwards, then a third to either side of the
    best. Each trial takes 3 rounds and a cooldown of 2. The smallest rate within .01 nats of the best is
    kept, with its 3 rounds; it stays constant until the last fifth.
    """
    run = begin(problem, start, seed)
    rounds, cooldown = (max(1, min(most, problem.horizon // 40)) for most in (3, 2))
    trials = Trials(problem, run, rounds, cooldown)
    line = _Line(trials, start, allowed=problem.horizon // 2 // (rounds + cooldown))
    for step in (1, -1):
        if line.best == 0:
            line.follow(step)
    for exponent in (line.best + 0.5, line.best - 0.5):
        line.loss(exponent)
    chosen = line.smallest()
    run.load_state_dict(chosen.state)
    finish(run, chosen.config, run.round + run.account.limit - run.account.rounds, wsd)
    return run.result()


class _Line:
    """Trials of the start's learning rate times ten to some exponent."""

    def __init__(self, trials: Trials, start: Config, allowed: int) -> None:
        self._trials, self._start, self._allowed = trials, start, max(1, allowed)
        self._found: dict[float, Trial] = {}
        self.loss(0.0)

    @property
    def best(self) -> float:
        return min(self._found, key=lambda exponent: self._found[exponent].loss)

    def loss(self, exponent: float) -> float:
        """Return the loss of a trial; infinite outside the space, and where no trial is left."""
        problem = self._trials.problem
        rate = self._start[problem.rate_name] * 10**exponent
        low, high = problem.rates
        if not low <= rate <= high or len(self._found) >= self._allowed:
            return math.inf
        self._found[exponent] = self._trials.play({**self._start, problem.rate_name: rate})
        return self._found[exponent].loss

    def follow(self, step: int) -> None:
        """Go on in one direction while the loss falls."""
        exponent, here = float(step), self._found[0.0].loss
        while (there := self.loss(exponent)) < here:
            exponent, here = exponent + step, there

    def smallest(self) -> Trial:
        """Return the trial of the smallest rate within the margin of the best."""
        least = self._found[self.best].loss
        good = [
            exponent for exponent, trial in self._found.items() if trial.loss <= least + _MARGIN
        ]
        return self._found[min(good)]
