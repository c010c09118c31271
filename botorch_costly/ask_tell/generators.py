"""States of the global random generators, which belong to the user and are saved with a run."""

import random
from typing import Any

import numpy as np
import torch

from botorch_costly.errors import StateMismatchError


def global_generators() -> dict[str, Any]:
    """Return the states of the global generators, whose draws order the data of most loaders."""
    states: dict[str, Any] = {"torch": torch.get_rng_state(), "python": random.getstate()}
    numpy = np.random.get_state(legacy=False)  # noqa: NPY002  the user's, which goes back with the rest
    key = torch.from_numpy(numpy["state"]["key"].astype(np.int64))  # a tensor can be saved
    states["numpy"] = {**numpy, "state": {**numpy["state"], "key": key}}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def check_generators(states: dict[str, Any]) -> None:
    """Check the states of global generators, without setting them.

    Raises:
        StateMismatchError: If a generator refuses its state.
    """
    try:
        torch.Generator().set_state(states["torch"].cpu())
        random.Random().setstate(states["python"])
        np.random.RandomState().set_state(_of_numpy(states))
    except (AttributeError, KeyError, IndexError, RuntimeError, TypeError, ValueError) as error:
        expected = "states of the global generators"
        raise StateMismatchError("generators", expected, type(states).__name__) from error


def set_global_generators(states: dict[str, Any]) -> None:
    """Set the global generators to states of ``global_generators``, all of them or none.

    Raises:
        StateMismatchError: If a generator refuses its state.
    """
    check_generators(states)
    torch.set_rng_state(states["torch"].cpu())
    random.setstate(states["python"])
    np.random.set_state(_of_numpy(states))  # noqa: NPY002
    if "cuda" in states:
        torch.cuda.set_rng_state_all([state.cpu() for state in states["cuda"]])


def _of_numpy(states: dict[str, Any]) -> dict[str, Any]:
    numpy = states["numpy"]
    key = numpy["state"]["key"].cpu().numpy().astype(np.uint32)
    return {**numpy, "state": {**numpy["state"], "key": key}}
