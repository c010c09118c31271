"""Sources of randomness: seeds that are checked, and generators that can be sent to another process."""

import math
import numbers
from typing import Any

import torch

from botorch_costly.errors import InvalidArgumentError, check

_SEEDS = 2**63  # torch takes seeds below twice as many


class SentGenerator(torch.Generator):
    """A generator whose pickle holds its state as bytes, so that it goes on the same in any process.

    The one of torch puts its state into memory that is shared with a process that is spawned, and lets
    go of it too early: the process dies as it starts.

    Example:
        >>> import pickle
        >>> generator = generator_of(3)
        >>> again = pickle.loads(pickle.dumps(generator))
        >>> bool(torch.rand((), generator=generator) == torch.rand((), generator=again))
        True
    """

    def clone_state(self) -> "SentGenerator":
        """Return a generator that goes on from here."""
        return _revived(self.device, _bytes_of(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return _revived, (self.device, _bytes_of(self))


def generator_of(seed: int, device: torch.device | str = "cpu") -> SentGenerator:
    """Return a generator of random numbers.

    Args:
        seed: An integer in ``0..2**63 - 1``.
        device: Of the generator.

    Raises:
        InvalidArgumentError: If the seed is no such integer.
    """
    generator = SentGenerator(device=device)
    generator.manual_seed(check_seed(seed))
    return generator


def check_seed(seed: int) -> int:
    """Return a seed as an int; integers of NumPy are integers, as is ``1e3``.

    Raises:
        InvalidArgumentError: If it is no integer in ``0..2**63 - 1``.

    Example:
        >>> check_seed(3)
        3
    """
    number = isinstance(seed, numbers.Real) and not isinstance(seed, bool)
    within = number and 0 <= seed < _SEEDS
    check(within and seed == math.floor(seed), "seed", "an integer in 0..2**63 - 1", seed)
    return int(seed)


def check_generator(generator: torch.Generator | None) -> torch.Generator:
    """Return a generator as it is: with None in its place the global one would be drawn from.

    Raises:
        InvalidArgumentError: If it is none.
    """
    if not isinstance(generator, torch.Generator):
        raise InvalidArgumentError("generator", "a torch.Generator", generator)
    return generator


def _bytes_of(generator: torch.Generator) -> bytes:
    return bytes(generator.get_state().tolist())


def _revived(device: torch.device, state: bytes) -> SentGenerator:
    generator = SentGenerator(device=device)
    generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
    return generator
