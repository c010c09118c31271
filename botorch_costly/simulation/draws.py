"""What chance decides in a trial: the function's path, the noise, the coins and the opening.

A trial has a stream of its own, which depends on the seed and its number alone. So trial 7 is the same
among a thousand as alone, and on every device, for draws are made on the CPU.

A trial's stream yields its opening first, then, for some rounds at a time, noise, coins and the
innovations of its function. So a longer run begins as a shorter one does. Streams of one seed differ:
a generator reads 32 bits of its seed, and these are a permutation of the trial's number.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import DTYPES
from botorch_costly.errors import InvalidShapeError, check, check_count
from botorch_costly.numerics.drift import retention_float
from botorch_costly.problems.drifting import DriftingFunction

_ROUNDS = 64  # that are drawn at a time: a multiple of 16, as normal numbers come by sixteens
_WORD = 0xFFFFFFFF
_SALT = 0x5EED5EED  # so that seed and trial do not change places


class Draws(NamedTuple):
    """What chance decides in each of ``m`` trials; every policy meets the same."""

    paths: Tensor  # f_t on the points, shape: (m, horizon, n)
    noise: Tensor  # what a query adds to the value, shape: (m, horizon)
    coins: Tensor  # uniform numbers in [0, 1), shape: (m, horizon)
    opening: Tensor  # index of the point played before anything is known, shape: (m,)

    def to(self, device: torch.device | str) -> "Draws":
        """Return the draws on another device."""
        return Draws(*(part.to(device) for part in self))

    def check(self, num_points: int) -> "Draws":
        """Return the draws if they fit each other and ``num_points`` points.

        Raises:
            InvalidShapeError: If a shape, a dtype or a device does not fit.
            InvalidArgumentError: If a trial opens at no point.
        """
        for name, part in self._asdict().items():
            dtypes = (torch.int64,) if name == "opening" else DTYPES
            expected = " or ".join(map(str, dtypes))
            check(part.dtype in dtypes, name, expected, part.dtype, InvalidShapeError)
            here, expected = part.device == self.paths.device, f"to be on {self.paths.device}"
            check(here, name, expected, part.device, InvalidShapeError)
        shape = tuple(self.paths.shape)
        fits = len(shape) == 3 and shape[-1] == num_points
        check(fits, "paths", f"shape (trials, horizon, {num_points})", shape, InvalidShapeError)
        for name, part in (("noise", self.noise), ("coins", self.coins)):
            received = tuple(part.shape)
            check(received == shape[:2], name, f"shape {shape[:2]}", received, InvalidShapeError)
        received = tuple(self.opening.shape)
        check(received == shape[:1], "opening", f"shape {shape[:1]}", received, InvalidShapeError)
        inside = bool(((self.opening >= 0) & (self.opening < num_points)).all())
        check(inside, "opening", f"points in 0..{num_points - 1}", self.opening.tolist())
        return self


def draw(problem: DriftingFunction, trials: range, horizon: int, seed: int = 0) -> Draws:
    """Return what chance decides in some trials, in the dtype of the problem's points.

    Args:
        problem: Says how functions and noise are distributed.
        trials: Numbers of the trials, from 0.
        horizon: Rounds of a trial, at least 1.
        seed: At least 0; with the number of a trial all that its draws depend on.

    Raises:
        InvalidArgumentError: If there is no trial, or a number is not such a count.

    Example:
        >>> problem = DriftingFunction.on_unit_interval(20)
        >>> many, seven = (draw(problem, trials, horizon=5) for trials in (range(9), range(7, 8)))
        >>> torch.equal(many.paths[7], seven.paths[0])
        True
    """
    check(len(trials) > 0, "trials", "at least one", trials)
    horizon, seed = check_count("horizon", horizon, minimum=1), check_count("seed", seed)
    check_count("first trial", min(trials))
    streams = [stream(seed, trial) for trial in trials]
    n = len(problem.points)
    opening = torch.stack([torch.randint(n, (), generator=s) for s in streams])
    noise, coins = (problem.points.new_empty(len(trials), horizon) for _ in range(2))
    paths = problem.points.new_empty(len(trials), horizon, n)
    for start in range(0, horizon, _ROUNDS):
        rounds = slice(start, min(start + _ROUNDS, horizon))
        some = rounds.stop - start
        for i, generator in enumerate(streams):
            noise[i, rounds] = _normal(generator, noise, _ROUNDS)[:some]
            coins[i, rounds] = torch.rand(_ROUNDS, generator=generator, dtype=coins.dtype)[:some]
            # A product for each trial: of a larger one rounding might depend on how many there are.
            paths[i, rounds] = problem.of_normal(_normal(generator, paths, _ROUNDS, n))[:some]
    noise *= problem.noise**0.5
    return Draws(_forgotten(paths, problem.forgetting), noise, coins, opening)


def stream(seed: int, trial: int) -> torch.Generator:
    """Return the generator of a trial."""
    key, rest = _SALT, check_count("seed", seed)
    while True:  # seeds of any size
        key = _mixed(key ^ (rest & _WORD))
        rest >>= 32
        if not rest:
            break
    return torch.Generator().manual_seed(_mixed(_mixed(trial & _WORD) ^ key))


def _mixed(word: int) -> int:
    """Permute the numbers of 32 bits so that neighbours have nothing in common (MurmurHash3's end)."""
    word ^= 0x9E3779B9  # zero is not to stay zero
    word = ((word ^ (word >> 16)) * 0x85EBCA6B) & _WORD
    word = ((word ^ (word >> 13)) * 0xC2B2AE35) & _WORD
    return word ^ (word >> 16)


def _normal(generator: torch.Generator, like: Tensor, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=like.dtype)


def _forgotten(innovations: Tensor, forgetting: float) -> Tensor:
    """Make paths of innovations, in place: ``f_{t+1} = a f_t + sqrt(1 - a^2) g``."""
    keep = retention_float(forgetting, 1)
    innovations[:, 1:] *= (1 - keep**2) ** 0.5
    for t in range(1, innovations.shape[1]):
        # Two roundings, not a fused one: which of both it is may depend on a point's place in memory.
        innovations[:, t] += keep * innovations[:, t - 1]
    return innovations
