"""Simulated trials of bandits: all policies share the random numbers of a trial."""

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
    """The course of all trials of ``p`` policies."""

    regret: Tensor  # largest mean reward less that of the arm played, shape: (p, m, horizon)
    query: Tensor  # bool, shape: (p, m, horizon)
    choice: Tensor  # arm, shape: (p, m, horizon)


class ArmDraws(NamedTuple):
    """The random numbers of ``m`` trials."""

    noise: Tensor  # of an observed reward, shape: (m, horizon)
    coins: Tensor  # uniform in [0, 1), shape: (m, horizon)
    luck: Tensor  # uniform in [0, 1), shape: (m, horizon)


def draw_for_arms(noise: float, trials: range, horizon: int, seed: int = 0) -> ArmDraws:
    """Return the random numbers of trials, each of which has its own stream.

    Args:
        noise: Variance of the noise.
        trials: Numbers of the trials, from 0.
        horizon: Rounds of a trial.
        seed: Seed, at least 0. The draws of a trial depend on the seed and its number alone.
    """
    std, rows = check_nonnegative("noise", noise) ** 0.5, []
    for trial in trials:
        generator = stream(seed, trial)
        normal = torch.randn(horizon, generator=generator, dtype=torch.float64)
        uniform = torch.rand(2, horizon, generator=generator, dtype=torch.float64)
        rows.append((std * normal, *uniform))
    return ArmDraws(*map(torch.stack, zip(*rows, strict=True)))


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
    """Run bandits on arms with drifting rewards.

    Up to rounding, a trial depends on the seed and its number alone: neither on the number of trials nor
    on the other policies.

    Args:
        problem: Mean rewards by round, and noise.
        policies: Strategies with their query rules.
        trials: Number of trials.
        horizon: Rounds of a trial.
        seed: Seed of all random numbers, at least 0.
        first_trial: Number of the first trial.
        device: Device of the computations. Random numbers are drawn on the CPU.

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
    is_filled = isinstance(policies, Sequence) and len(policies) > 0
    check(is_filled, "policies", "at least one, in a list", policies)
    for policy in policies:
        check(isinstance(policy, BanditPolicy), "policies", "BanditPolicy objects", policy)
    device = check_device(device)
    draws = draw_for_arms(problem.noise, range(first, first + trials), horizon, seed)
    values = problem.values(horizon).to(device, torch.float64)
    shape, expected = tuple(values.shape), f"shape {horizon} x arms, two or more"
    check(len(shape) == 2 and shape[0] == horizon, "values", expected, shape, InvalidShapeError)
    check(bool(values.isfinite().all()), "values", "finite mean rewards", "one that is none")
    chance = ArmDraws(*(field.to(device) for field in draws))
    best, runs = values.amax(-1), []
    for policy in policies:
        player = BanditPlayer(policy, trials, values.shape[-1], horizon, device=device)
        course = drive(player, values.expand(trials, -1, -1), *chance)
        runs.append(ArmRun(best - course.value, course.query, course.choice))
    return ArmRun(*map(torch.stack, zip(*runs, strict=True)))
