"""Checked seeds, and random generators that can be sent to another process."""

import math
import numbers
from typing import Any

import torch

from botorch_costly.errors import InvalidArgumentError, check

_SEEDS = 2**63  # torch accepts seeds below 2**64


class SentGenerator(torch.Generator):
    """A generator whose pickle contains its state as bytes, so that it continues in any process.

    A pickled ``torch.Generator`` has its state in shared memory, which torch releases before a spawned
    process has read it; that process then crashes.

    Example:
        >>> import pickle
        >>> generator = generator_of(3)
        >>> again = pickle.loads(pickle.dumps(generator))
        >>> bool(torch.rand((), generator=generator) == torch.rand((), generator=again))
        True
    """

    def clone_state(self) -> "SentGenerator":
        """Return an independent generator with the same state."""
        return _from_state(self.device, _bytes_of(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_state, (self.device, _bytes_of(self))


def generator_of(seed: int, device: torch.device | str = "cpu") -> SentGenerator:
    """Return a generator of random numbers.

    Args:
        seed: An integer in ``0..2**63 - 1``.
        device: Device of the generator.

    Raises:
        InvalidArgumentError: If the seed is no integer in that range.
    """
    generator = SentGenerator(device=device)
    generator.manual_seed(check_seed(seed))
    return generator


def check_seed(seed: int) -> int:
    """Return a seed as an int; NumPy integers and floats such as ``1e3`` are accepted.

    Raises:
        InvalidArgumentError: If the seed is no integer in ``0..2**63 - 1``.

    Example:
        >>> check_seed(3)
        3
    """
    is_number = isinstance(seed, numbers.Real) and not isinstance(seed, bool)
    is_valid = is_number and 0 <= seed < _SEEDS and seed == math.floor(seed)
    check(is_valid, "seed", "an integer in 0..2**63 - 1", seed)
    return int(seed)


def check_generator(generator: torch.Generator | None) -> torch.Generator:
    """Return a generator unchanged; None is refused since torch would use the global generator.

    Raises:
        InvalidArgumentError: If ``generator`` is no ``torch.Generator``.
    """
    if not isinstance(generator, torch.Generator):
        raise InvalidArgumentError("generator", "a torch.Generator", generator)
    return generator


def _bytes_of(generator: torch.Generator) -> bytes:
    return bytes(generator.get_state().tolist())


def _from_state(device: torch.device, state: bytes) -> SentGenerator:
    generator = SentGenerator(device=device)
    generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
    return generator
