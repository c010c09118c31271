"""One run whose learning rate follows the training loss: nothing is measured on other rows.

References:
    S. Subramanian, B. Krishnamoorthy, P. Murthy. Dynamic learning rate scheduling based on loss changes
    leads to faster convergence. 2025: ``greedy``; its limits, counts and factor are the defaults of
    ``lr_scheduler_type="greedy"`` of Hugging Face Transformers.
    H. Dong et al. AdaLRS: loss-guided adaptive learning rate search for efficient foundation model
    pretraining. NeurIPS 2025: ``adalrs``.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.suite.compute_bound.account import Config, Method, Result, begin
from benchmarks.suite.compute_bound.schedules import constant, finish, wsd
from benchmarks.suite.compute_bound.training import LongProblem

_SEARCH = (0.1, 0.4)  # of a run, between which AdaLRS moves the rate
_WINDOWS = 40  # of a run, that a slope is fitted to one of
_SHORTEST = 3  # rounds of a window, so that a slope has an error


@dataclass
class GreedyRate:
    """A learning rate that rises while a loss improves, and falls while it does not.

    The reset of GreedyLR after 500 falls at the lower limit is left out: no run here is so long.

    Args:
        rate: The learning rate, at first that of the user.
        factor: What the rate is multiplied by when it falls, and divided by when it rises; below 1.
        patience: Losses in a row that may improve, or not, before the rate moves.
        threshold: How much lower than the best a loss is that has improved.
        low: The rate does not fall below it.
        high: The rate does not rise above it.
        least: A smaller move is not made.
        window: Losses that are averaged; 1 is no smoothing.
    """

    rate: float
    factor: float = 0.95
    patience: int = 10
    threshold: float = 1e-6
    low: float = 1e-3
    high: float = 1.0
    least: float = 1e-8
    window: int = 1
    _best: float = math.inf
    _good: int = 0
    _bad: int = 0
    _losses: deque[float] = field(default_factory=deque)

    def hear(self, loss: float) -> None:
        """Move the rate, or not, after a loss."""
        self._losses.append(loss)
        if len(self._losses) > self.window:
            self._losses.popleft()
        loss = fmean(self._losses)
        if loss < self._best - self.threshold:
            self._best, self._good, self._bad = loss, self._good + 1, 0
        else:
            self._good, self._bad = 0, self._bad + 1
        if self._good > self.patience:
            self._good = 0
            higher = min(self.rate / self.factor, self.high)
            self.rate = higher if higher - self.rate > self.least else self.rate
        elif self._bad > self.patience:
            self._bad = 0
            lower = max(self.rate * self.factor, self.low)
            self.rate = lower if self.rate - lower > self.least else self.rate


def greedily(**changes: Any) -> Method:
    """Return the method of one run under a ``GreedyRate``, which hears the mean loss of each round.

    ``changes`` are arguments that are not the defaults.
    """

    def method(problem: LongProblem, start: Config, seed: int) -> Result:
        run, first = begin(problem, start, seed), problem.rate_of(start)
        greedy = GreedyRate(first, **changes)
        while run.round < problem.horizon:
            greedy.hear(fmean(run.train_round(start, rate_factor=greedy.rate / first)))
        return run.result()

    return method


class Line(NamedTuple):
    """The line of least squares through the losses of a window."""

    speed: float  # by how much the loss falls a minibatch
    error: float  # standard error of the speed
    level: float  # mean of the losses


def line_of(losses: Sequence[float]) -> Line:
    """Fit a line to three losses or more; not a number where one of them is none."""
    many, level = len(losses), fmean(losses)
    places = [place - (many - 1) / 2 for place in range(many)]
    spread = sum(place**2 for place in places)
    slope = sum(place * loss for place, loss in zip(places, losses, strict=True)) / spread
    missed = sum(
        (loss - level - slope * place) ** 2 for place, loss in zip(places, losses, strict=True)
    )
    return Line(-slope, math.sqrt(missed / (many - 2) / spread), level)


@dataclass
class SlopeRate:
    """What a learning rate is multiplied by, moved by how fast the loss falls from window to window.

    Where a window falls more slowly than the one before, the next one tries ``up`` times the rate. It is
    kept if that one falls faster by more than both standard errors. Else the run goes back to before it,
    and the rate too, which is divided by ``down`` if the trial was slower by more than both errors. It is
    divided as well when the level rises twice in a row. Nothing is tried above the highest level so far.
    Both numbers shrink towards 1.

    The error of a slope is that of a line fitted to the losses of a window, and a window lasts for a
    fortieth of the run: choices of ours.

    Args:
        up: What the rate is multiplied by in a trial.
        down: What it is divided by.
        shrink: What both are multiplied by with each window.
    """

    up: float = 3.0
    down: float = 2.0
    shrink: float = 0.99
    kept: float = 1.0  # the multiple without the trial that goes on
    _trial: float | None = None
    _lines: list[Line] = field(default_factory=list)
    _windows: int = 0

    @property
    def multiple(self) -> float:
        """What the rate of the user is multiplied by in the next window."""
        return self.kept if self._trial is None else self._trial

    def hear(self, losses: Sequence[float]) -> bool:
        """Learn the losses of the minibatches of a window; return whether to go back to before it."""
        line = line_of(losses)
        self._windows += 1
        if self._trial is None:
            self._follow(line)
            return False
        trial, self._trial, before = self._trial, None, self._lines[-1]
        error = line.error + before.error
        if line.speed > before.speed + error:
            self.kept = trial
            self._lines.append(line)
            return False
        if not line.speed >= before.speed - error:  # or the loss is not a number any more
            self.kept /= self._shrunk(self.down)
        return True

    def _follow(self, line: Line) -> None:
        """Start a trial, or slow down, after a window without one."""
        before, levels = self._lines[-1:], [known.level for known in self._lines]
        self._lines.append(line)
        rises = len(levels) >= 2 and line.level > levels[-1] > levels[-2]
        if rises or not math.isfinite(line.level):
            self.kept /= self._shrunk(self.down)
        elif before and line.speed < before[0].speed and line.level <= max(levels):
            self._trial = self.kept * self._shrunk(self.up)

    def _shrunk(self, number: float) -> float:
        return max(1.0, self.shrink**self._windows * number)


def adalrs(problem: LongProblem, start: Config, seed: int) -> Result:
    """Train one run whose peak rate a ``SlopeRate`` moves from a tenth to four tenths; then decay late.

    A window is a fortieth of the run, at least three rounds. Rounds of trials that are given back count.
    """
    run, rate = begin(problem, start, seed), SlopeRate()
    first, last = (round(share * problem.horizon) for share in _SEARCH)
    rounds = max(_SHORTEST, problem.horizon // _WINDOWS)
    finish(run, start, first, constant)
    while run.account.rounds + rounds <= last:
        state, losses = run.copy(), []
        for _ in range(rounds):
            losses += run.train_round(start, rate_factor=rate.multiple)
        if rate.hear(losses):
            run.load_state_dict(state)
    end = run.round + run.account.limit - run.account.rounds
    finish(run, start, end, lambda round, rounds: rate.kept * wsd(round, rounds))
    return run.result()
