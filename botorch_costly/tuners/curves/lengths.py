"""Lengths of whole trainings, iterations at which they may stop, and the candidate configurations."""

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from botorch_costly.ask_tell.points import SAME
from botorch_costly.errors import InvalidConfigError, InvalidShapeError, check, check_count
from botorch_costly.numerics.growth import SHARES
from botorch_costly.parameters import Integer, Plain
from botorch_costly.plain import as_number, hashes_of
from botorch_costly.space import SearchSpace


class Ladder:
    """Iterations at which a training may stop: shares of its length.

    Args:
        shortest: Iterations of the shortest segment of a new training.
        longest: Iterations of the longest training, if a choice of shares needs them.

    Attributes:
        shares: Shares of a training to choose from, none below the shortest segment of the longest one.
    """

    def __init__(self, shortest: int, longest: int | None = None) -> None:
        self._shortest = shortest
        least = 0.0 if longest is None else min(shortest / longest, 1.0)
        self.shares = tuple(sorted({max(share, least) for share in SHARES}))

    def rungs(self, length: int) -> list[int]:
        """Return the iterations at which a training may stop, counted from 1; the last is its end."""
        return list(_rungs(self._shortest, length))

    def at(self, share: float, length: int) -> int:
        """Return the iteration at a share of a training, but at least the shortest segment."""
        return _at(share, self._shortest, length)

    def after(self, done: int, length: int) -> int:
        """Return the first rung after some iterations, fewer than the length."""
        return next(rung for rung in self.rungs(length) if rung > done)


@cache  # asks read the rungs of all trainings
def _rungs(shortest: int, length: int) -> tuple[int, ...]:
    return tuple(sorted({_at(share, shortest, length) for share in SHARES}))


def _at(share: float, shortest: int, length: int) -> int:
    return min(max(math.ceil(share * length - 1e-9), shortest), length)


class Lengths:
    """Iterations of whole trainings, and the configurations to choose from.

    Args:
        space: Search space of the configurations.
        iterations: Iterations of each training, or the name of the ``Integer`` that holds them.
        candidates: Configurations to choose from; the whole space if omitted.
        lengths: Iterations for each candidate, in place of ``iterations``.

    Raises:
        InvalidArgumentError: If an argument is outside its range.
        InvalidShapeError: If there is not one length for each candidate.
        InvalidConfigError: If a candidate does not belong to the space.
    """

    def __init__(
        self,
        space: SearchSpace,
        iterations: int | str | None,
        candidates: Sequence[Mapping[str, Plain]] | None,
        lengths: Sequence[int] | None,
    ) -> None:
        exclusive = (iterations is None) != (lengths is None)
        expected = "iterations, or lengths of candidates"
        check(exclusive, "iterations", expected, (iterations, lengths))
        self._space, self._iterations = space, iterations
        self.configs = None if candidates is None else [space.canonical(c) for c in candidates]
        self.points: Tensor | None = None
        if self.configs is not None:
            check(len(self.configs) > 0, "candidates", "at least one configuration", candidates)
            self.points = torch.stack([space.encode(config) for config in self.configs])
        self._each = self._checked(lengths)
        self.longest = self._longest()

    def _checked(self, lengths: Sequence[int] | None) -> list[int] | None:
        if lengths is None:
            return None
        number = 0 if self.configs is None else len(self.configs)
        expected = f"one for each of {number} candidates"
        check(len(lengths) == number, "lengths", expected, len(lengths), InvalidShapeError)
        return [check_count("lengths", length, minimum=1) for length in lengths]

    def _longest(self) -> int:
        if self._each is not None:
            return max(self._each)
        if not isinstance(self._iterations, str):
            assert self._iterations is not None
            return check_count("iterations", self._iterations, minimum=1)
        parameter = dict(self._space.parameters).get(self._iterations)
        valid = isinstance(parameter, Integer) and parameter.low >= 1
        expected = "a number, or the name of an Integer that is at least 1"
        check(valid, "iterations", expected, self._iterations)
        assert isinstance(parameter, Integer)
        return parameter.high

    @property
    def described(self) -> Any:
        """Description of the lengths in a state's header."""
        return self._iterations if self._each is None else f"of each: {_digest(self._each)}"

    @property
    def digest(self) -> str:
        """Description of the candidates in a state's header."""
        return "the space" if self.configs is None else _digest(self.configs)

    def ladder(self, shortest: int) -> Ladder:
        """Return the iterations at which trainings may stop.

        Raises:
            InvalidArgumentError: If the shortest segment is not positive, or not shorter than the longest
                training.
        """
        longest = self.longest
        ladder = Ladder(check_count("shortest", shortest, minimum=1), longest)
        expected = f"less than {longest}, the iterations of the longest training"
        check(shortest < longest or longest == 1, "shortest", expected, shortest)
        return ladder

    def canonical(self, config: Mapping[str, Any]) -> dict[str, Plain]:
        """Return a configuration in plain values; raise InvalidConfigError if it has no length."""
        plain = self._space.canonical(config)
        if self._each is not None:
            _, away = self._nearest(self._space.encode(plain))
            listed = away < SAME
            expected = "one of the candidates, which have lengths"
            check(listed, "config", expected, config, InvalidConfigError)
        return plain

    def length_of(self, config: Mapping[str, Plain]) -> int:
        """Return the iterations of a whole training of a configuration."""
        if self._each is not None:
            return self._each[self._nearest(self._space.encode(config))[0]]
        if isinstance(self._iterations, str):
            return int(as_number(self._iterations, config[self._iterations]))
        assert self._iterations is not None
        return self._iterations

    def config_of(self, point: Tensor) -> Mapping[str, Plain]:
        """Return the configuration of an encoded point: of a list, the nearest candidate."""
        if self.configs is None:
            return self._space.decode(point)
        return self.configs[self._nearest(point)[0]]

    def _nearest(self, point: Tensor) -> tuple[int, float]:
        """Return the number of the candidate nearest to an encoded point, which may have lost digits."""
        assert self.points is not None
        away, number = (self.points.to(point) - point).abs().amax(-1).min(0)
        return int(number), float(away)


def _digest(values: Any) -> str:
    hashes = hashes_of(values, partial(json.dumps, sort_keys=True), 12)
    return f"{len(values)}, {hashes}"
