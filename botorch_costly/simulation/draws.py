"""Random draws of a trial: the path of the function, the noise, the coins and the opening.

Each trial has a random stream that depends on the seed and the number of the trial alone. So trial 7 is
the same alone and among a thousand. Draws are made on the CPU, so they are equal on every device.

A stream first yields the opening, then, for a block of rounds at a time, noise, coins and the
innovations of the function. So the first rounds of a run do not depend on its horizon. A generator reads
32 bits of its seed; they are a permutation of the trial's number, so all streams of a seed differ.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import DTYPES
from botorch_costly.errors import InvalidShapeError, check, check_count
from botorch_costly.numerics.drift import retention_float
from botorch_costly.problems.drifting import DriftingFunction

_ROUNDS = 64  # rounds of a block: a multiple of 16, as PyTorch draws normal numbers by sixteens
_WORD = 0xFFFFFFFF
_SALT = 0x5EED5EED  # so that exchanging seed and trial gives another stream


class Draws(NamedTuple):
    """Random draws of ``m`` trials, which are the same for every policy."""

    paths: Tensor  # f_t on the points, shape: (m, horizon, n)
    noise: Tensor  # added to the value by a query, shape: (m, horizon)
    coins: Tensor  # uniform numbers in [0, 1), shape: (m, horizon)
    opening: Tensor  # index of the point played until the first query, shape: (m,)

    def to(self, device: torch.device | str) -> "Draws":
        """Return the draws on another device."""
        return Draws(*(tensor.to(device) for tensor in self))

    def check(self, num_points: int) -> "Draws":
        """Return the draws if they fit each other and ``num_points`` points.

        Raises:
            InvalidShapeError: If a shape, a dtype or a device does not fit.
            InvalidArgumentError: If an opening is not the index of a point.
        """
        for name, tensor in self._asdict().items():
            dtypes = (torch.int64,) if name == "opening" else DTYPES
            expected = " or ".join(map(str, dtypes))
            check(tensor.dtype in dtypes, name, expected, tensor.dtype, InvalidShapeError)
            device = self.paths.device
            expected = f"to be on {device}"
            check(tensor.device == device, name, expected, tensor.device, InvalidShapeError)
        shape = tuple(self.paths.shape)
        fits = len(shape) == 3 and shape[-1] == num_points
        check(fits, "paths", f"shape (trials, horizon, {num_points})", shape, InvalidShapeError)
        for name, dims in (("noise", 2), ("coins", 2), ("opening", 1)):
            received = tuple(getattr(self, name).shape)
            check(
                received == shape[:dims], name, f"shape {shape[:dims]}", received, InvalidShapeError
            )
        inside = bool(((self.opening >= 0) & (self.opening < num_points)).all())
        check(inside, "opening", f"points in 0..{num_points - 1}", self.opening.tolist())
        return self


def draw(problem: DriftingFunction, trials: range, horizon: int, seed: int = 0) -> Draws:
    """Return the random draws of the trials, in the dtype of the problem's points.

    Args:
        problem: Distribution of functions and noise.
        trials: Numbers of the trials, from 0.
        horizon: Rounds of a trial, at least 1.
        seed: Seed, at least 0. The draws of a trial depend on the seed and its number alone.

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
        size = rounds.stop - start
        for i, generator in enumerate(streams):
            noise[i, rounds] = _normal(generator, noise, _ROUNDS)[:size]
            coins[i, rounds] = torch.rand(_ROUNDS, generator=generator, dtype=coins.dtype)[:size]
            # One product per trial: the rounding of a joint product might depend on the number of trials.
            paths[i, rounds] = problem.of_normal(_normal(generator, paths, _ROUNDS, n))[:size]
    noise *= problem.noise**0.5
    return Draws(_accumulate(paths, problem.forgetting), noise, coins, opening)


def stream(seed: int, trial: int) -> torch.Generator:
    """Return the generator of a trial."""
    key, remaining = _SALT, check_count("seed", seed)
    while True:  # a seed may have more than 32 bits
        key = _mixed(key ^ (remaining & _WORD))
        remaining >>= 32
        if not remaining:
            break
    return torch.Generator().manual_seed(_mixed(_mixed(trial & _WORD) ^ key))


def _mixed(word: int) -> int:
    """Permute the numbers of 32 bits so that neighbours are unrelated (the finalizer of MurmurHash3)."""
    word ^= 0x9E3779B9  # zero would stay zero otherwise
    word = ((word ^ (word >> 16)) * 0x85EBCA6B) & _WORD
    word = ((word ^ (word >> 13)) * 0xC2B2AE35) & _WORD
    return word ^ (word >> 16)


def _normal(generator: torch.Generator, like: Tensor, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=like.dtype)


def _accumulate(innovations: Tensor, forgetting: float) -> Tensor:
    """Turn innovations into paths in place: ``f_{t+1} = a f_t + sqrt(1 - a^2) g``."""
    keep = retention_float(forgetting, 1)
    innovations[:, 1:] *= (1 - keep**2) ** 0.5
    for t in range(1, innovations.shape[1]):
        # Not a fused multiply-add: where it applies, and so its rounding, may depend on the alignment.
        innovations[:, t] += keep * innovations[:, t - 1]
    return innovations
