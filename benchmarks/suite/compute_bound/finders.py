"""The learning rate is found before the run begins, with steps or networks that are given up."""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from benchmarks.suite.compute_bound.account import (
    Account,
    Accounted,
    AccountedRun,
    Config,
    Result,
    begin,
)
from benchmarks.suite.compute_bound.optimizers import OPTIMIZERS
from benchmarks.suite.compute_bound.schedules import cosine, finish, with_rate, wsd
from benchmarks.suite.compute_bound.training import LongProblem
from benchmarks.suite.compute_bound.works import narrower
from botorch_costly.errors import InvalidArgumentError

# The defaults of Lightning's ``lr_find`` and of its suggestion
_STEPS, _SLOWEST, _FASTEST = 100, 1e-8, 1.0
_MEMORY, _DIVERGED = 0.98, 4.0
_SKIPPED_FIRST, _SKIPPED_LAST = 10, 1

_DIVISOR = 4  # of the width
_MULTIPLES = (0.1, 0.3, 1.0, 3.0, 10.0)  # of the start's learning rate
_SEARCHED = 0.2  # of the compute, for the narrow networks


def find_then_cosine(problem: LongProblem, start: Config, seed: int) -> Result:
    """Find the rate as Lightning does, from the first state and back to it; then half a cosine.

    The test takes 100 steps, or as many more as fill its last round, but at most half of the run. Without
    a suggestion the rate stays what it is. Suggestions outside the space become its bounds.
    """
    run = begin(problem, start, seed)
    rounds = min(math.ceil(_STEPS / problem.steps), problem.horizon // 2)
    rate = range_test(run, start, rounds) or problem.rate_of(start)
    config = with_rate(problem, dict(start), rate / problem.rate_of(start))
    finish(run, config, run.account.limit - run.account.rounds, cosine)
    return run.result()


def range_test(run: AccountedRun, config: Config, rounds: int) -> float | None:
    """Return the suggested learning rate after a test of so many rounds, and go back to before it.

    References:
        L. N. Smith. Cyclical learning rates for training neural networks. WACV 2017, section 3.3.
    """
    problem, state = run.problem, run.copy()
    rates, losses = exponential_rates(rounds * problem.steps), list[float]()
    for _ in range(rounds):
        # Without the program's own warm-up: the test has a schedule of its own.
        own = problem.settings_of(config, run.round)["learning_rate"]
        here = rates[len(losses) : len(losses) + problem.steps]
        losses += run.train_round(config, rate_factor=[rate / own for rate in here])
        if len(smoothed(losses)) < len(losses):
            break
    run.load_state_dict(state)
    return suggestion(rates, smoothed(losses))


def exponential_rates(steps: int) -> list[float]:
    """Return the rates of a test, which grow exponentially from 1e-8 to 1.

    As in Lightning, the second rate of an even progression is left out.
    """
    ratio = _FASTEST / _SLOWEST
    return [_SLOWEST * ratio ** ((step + 1) / steps if step else 0.0) for step in range(steps)]


def smoothed(losses: Sequence[float]) -> list[float]:
    """Return running means of losses through the first that is above four times the least before it.

    As in Lightning, means are divided by the weights of one step more than there are.
    """
    mean, found = 0.0, list[float]()
    for step, loss in enumerate(losses, 1):
        mean = _MEMORY * mean + (1 - _MEMORY) * loss
        found.append(mean / (1 - _MEMORY ** (step + 1)))
        if step > 1 and found[-1] > _DIVERGED * min(found[:-1]):
            break
    return found


def suggestion(rates: Sequence[float], means: Sequence[float]) -> float | None:
    """Return the rate where the means fall the most, step by step; None of too few.

    Steps are equal in the logarithm of the rate. Lightning divided by them until 2025, and has divided by
    the differences of the rates since, which often finds a chance fall at one of the lowest rates.
    """
    pairs = list(zip(rates, means, strict=False))[_SKIPPED_FIRST:-_SKIPPED_LAST]
    pairs = [(rate, mean) for rate, mean in pairs if math.isfinite(mean)]
    if len(pairs) < 2:
        return None
    (falls,) = torch.gradient(torch.tensor([mean for _, mean in pairs], dtype=torch.float64))
    return pairs[int(falls.argmin())][0]


def narrow_then_wide(problem: LongProblem, start: Config, seed: int) -> Result:
    """Find the rate on networks of a quarter of the width; then train the wide one and decay late.

    A fifth of the compute is for five networks with five rates, each trained with the late decay and
    then measured; a round of theirs costs its share of operations. The best rate goes to the wide network
    by the rule of muP for matrices of hidden layers: divided by the ratio of the widths where steps are
    normalized, as Adam's, and as it is for SGD. All parameters have that rate, which is an approximation:
    in muP that of biases and of the first layer is another one.

    References:
        G. Yang, E. J. Hu et al. Tensor programs V: tuning large neural networks via zero-shot
        hyperparameter transfer. NeurIPS 2021, table 3.

    Raises:
        InvalidArgumentError: If the network of the problem has one width only.
    """
    narrow = narrower(problem.work, _DIVISOR)
    if narrow is None:
        raise InvalidArgumentError("problem", "one whose network has a width", problem.name)
    run, paid = begin(problem, start, seed), Account(len(_MULTIPLES) * problem.horizon)
    accounted = Accounted(replace(problem, work=narrow.work), start, paid)
    share = accounted.setup(seed).operations() / run.operations()
    length = int(_SEARCHED * problem.horizon / (share * len(_MULTIPLES)))
    ends = []
    for multiple in _MULTIPLES:
        small, config = accounted.setup(seed), with_rate(problem, dict(start), multiple)
        finish(small, config, max(1, min(length, problem.horizon)), wsd)
        ends.append((small.validate().loss, config))
    run.account.charge(paid, share)
    scale = 1 / narrow.times if OPTIMIZERS[problem.optimizer].normalized else 1.0
    config = with_rate(problem, min(ends, key=lambda end: end[0])[1], scale)
    finish(run, config, run.account.limit - run.account.rounds, wsd)
    return run.result()
