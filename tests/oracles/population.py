"""Choices for several members, from the papers, by one dense solve; gains, by walking back a list."""

import math

import torch

from tests.oracles import dense_gp


def moments(observations, pending, grid, now, lengthscale, noise, forgetting):
    """GP-BUCB, Desautels et al. (2014): the mean of what was seen, the deviation of that and pending."""

    def solve(points, times, rewards):
        x = torch.stack(points)
        return dense_gp.posterior(
            dense_gp.matern(x, x, lengthscale), times, torch.tensor(rewards, dtype=torch.float64),
            noise, dense_gp.matern(grid, x, lengthscale), dense_gp.matern(grid, grid, lengthscale),
            now, forgetting,
        )[:2]  # fmt: skip

    points, times, rewards = (list(part) for part in zip(*observations, strict=True))
    mean, _ = solve(points, times, rewards)
    # A variance does not depend on rewards: those of the pending ones are anything.
    more = [math.pi] * len(pending)
    _, cov = solve([*points, *pending], [*times, *[now] * len(pending)], [*rewards, *more])
    return mean, cov.diagonal()


def bound(*arguments, beta):
    mean, variance = moments(*arguments)
    return mean + math.sqrt(beta) * variance.sqrt()


def rewards_of_round(gains, believed):
    """Each gain, less what the round gave to all: the middle one of what gains exceed beliefs by."""
    over = sorted(gain - mean for gain, mean in zip(gains, believed, strict=True))
    low, high = over[(len(over) - 1) // 2], over[len(over) // 2]
    return [gain - (low + high) / 2 for gain in gains]


def incumbent(observations, points, start, now, lengthscale, noise, forgetting):
    """The point with the largest lower bound of its advantage over the start; None if none has one."""
    x, times, rewards = zip(*observations, strict=True)
    x, best, found = torch.stack(x), 0.0, None
    for point in points:
        pair = torch.stack([point, start])
        mean, cov, _ = dense_gp.posterior(
            dense_gp.matern(x, x, lengthscale), times, torch.tensor(rewards, dtype=torch.float64),
            noise, dense_gp.matern(pair, x, lengthscale), dense_gp.matern(pair, pair, lengthscale),
            now, forgetting,
        )  # fmt: skip
        spread = float(cov[0, 0] + cov[1, 1] - 2 * cov[0, 1])
        bound = float(mean[0] - mean[1]) - math.sqrt(max(spread, 0.0))
        if bound > best:
            best, found = bound, point
    return found


def gain(rounds, number, member):
    """Walk a member's weights back to when they were measured; rounds are (configs, origins, levels)."""
    level, config = rounds[number][2][member], rounds[number][0][member]
    at, who = number, member
    while level is not None:
        if rounds[at][0][who] != config:
            return None
        if at == 0:
            return level / (number + 1)
        who = rounds[at][1][who]
        at -= 1
        if rounds[at][2][who] is not None:
            return (level - rounds[at][2][who]) / (number - at)
    return None
