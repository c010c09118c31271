"""Many trials of bandits on known rewards: every policy meets equal noise, coins and luck."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from botorch_costly.bandits.player import BanditPlayer, BanditPolicy
from botorch_costly.device import check_device
from botorch_costly.errors import InvalidShapeError, check, check_count, check_nonnegative
from botorch_costly.simulation.draws import stream
from botorch_costly.simulation.player import drive


class Arms(Protocol):
    """Rewards of arms by round, such as :class:`botorch_costly.problems.DriftingArms`."""

    @property
    def noise(self) -> float:
        """Noise variance of an observation."""

    def values(self, horizon: int) -> Tensor:
        """Return the mean reward of each arm in each round, shape ``(horizon, n)``."""


class ArmRun(NamedTuple):
    """What happened in every trial."""

    regret: Tensor  # largest mean reward less that of the arm played, shape: (p, m, horizon)
    query: Tensor  # bool, shape: (p, m, horizon)
    choice: Tensor  # arm, shape: (p, m, horizon)


class ArmDraws(NamedTuple):
    """What chance decides in each of ``m`` trials."""

    noise: Tensor  # what a query adds to a reward, shape: (m, horizon)
    coins: Tensor  # uniform in [0, 1), shape: (m, horizon)
    luck: Tensor  # uniform in [0, 1), shape: (m, horizon)


def draw_for_arms(noise: float, trials: range, horizon: int, seed: int = 0) -> ArmDraws:
    """Return what chance decides in some trials, each of which has a stream of its own.

    Args:
        noise: Variance.
        trials: Numbers of the trials, from 0.
        horizon: Rounds of a trial.
        seed: At least 0; with the number of a trial all that its draws depend on.
    """
    std, rows = check_nonnegative("noise", noise) ** 0.5, []
    for trial in trials:
        own = stream(seed, trial)
        normal = torch.randn(horizon, generator=own, dtype=torch.float64)
        uniform = torch.rand(2, horizon, generator=own, dtype=torch.float64)
        rows.append((std * normal, *uniform))
    return ArmDraws(*(torch.stack(part) for part in zip(*rows, strict=True)))


def simulate_arms(
    problem: Arms,
    policies: Sequence[BanditPolicy],
    trials: int = 100,
    horizon: int = 2000,
    *,
    seed: int = 0,
    first_trial: int = 0,
    device: torch.device | str = "cpu",
) -> ArmRun:
    """Run bandits on arms whose rewards drift.

    What happens in a trial depends on the seed and the number of the trial alone, rounding aside: not on
    the number of trials nor on the other policies.

    Args:
        problem: Mean rewards by round, and noise.
        policies: Where and whether to query.
        trials: Number of trials.
        horizon: Rounds of a trial.
        seed: Of noise, coins and luck, at least 0.
        first_trial: Number of the first of the trials.
        device: Where to compute. Draws are made on the CPU.

    Raises:
        InvalidArgumentError: If there is no policy, an option is outside its range, the noise negative,
            or a mean reward not finite.
        InvalidShapeError: If the problem has no mean reward of each arm in each round.
        CostlyError: If a rule cannot serve a run of that horizon.

    Example:
        >>> from botorch_costly.bandits import UCB1
        >>> from botorch_costly.problems import DriftingArms
        >>> from botorch_costly.query import BernoulliQuery
        >>> policy = BanditPolicy("UCB1", UCB1(), BernoulliQuery(0.3))
        >>> run = simulate_arms(DriftingArms("sine"), [policy], trials=4, horizon=20)
        >>> run.regret.shape
        torch.Size([1, 4, 20])
    """
    trials, horizon = check_count("trials", trials, 1), check_count("horizon", horizon, 1)
    first, seed = check_count("first_trial", first_trial), check_count("seed", seed)
    some = isinstance(policies, Sequence) and len(policies) > 0
    check(some, "policies", "at least one, in a list", policies)
    for policy in policies:
        check(isinstance(policy, BanditPolicy), "policies", "BanditPolicy objects", policy)
    device = check_device(device)
    drawn = draw_for_arms(problem.noise, range(first, first + trials), horizon, seed)
    chance = ArmDraws(*(part.to(device) for part in drawn))
    values = problem.values(horizon).to(device, torch.float64)
    shape, wanted = tuple(values.shape), f"shape {horizon} x arms, two or more"
    check(len(shape) == 2 and shape[0] == horizon, "values", wanted, shape, InvalidShapeError)
    check(bool(values.isfinite().all()), "values", "finite mean rewards", "one that is none")
    everywhere, best = values.expand(trials, -1, -1), values.amax(-1)
    parts = []
    for policy in policies:
        player = BanditPlayer(policy, trials, values.shape[-1], horizon, device=device)
        course = drive(player, everywhere, *chance)
        parts.append(ArmRun(best - course.value, course.query, course.choice))
    return ArmRun(*(torch.stack(part) for part in zip(*parts, strict=True)))
