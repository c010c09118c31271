"""The states of the global generators, which belong to the user: a run that goes on goes on with them."""

import random
from typing import Any

import numpy as np
import torch


def global_generators() -> dict[str, Any]:
    """Return the states of the global generators, whose draws order the data of most loaders."""
    states: dict[str, Any] = {"torch": torch.get_rng_state(), "python": random.getstate()}
    numpy = np.random.get_state(legacy=False)  # noqa: NPY002  the user's, which goes back with the rest
    key = torch.from_numpy(numpy["state"]["key"].astype(np.int64))  # a tensor can be saved
    states["numpy"] = {**numpy, "state": {**numpy["state"], "key": key}}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def set_global_generators(states: dict[str, Any]) -> None:
    """Put the global generators into the states of ``global_generators``."""
    torch.set_rng_state(states["torch"].cpu())
    random.setstate(states["python"])
    numpy = states["numpy"]
    key = numpy["state"]["key"].cpu().numpy().astype(np.uint32)
    np.random.set_state({**numpy, "state": {**numpy["state"], "key": key}})  # noqa: NPY002
    if "cuda" in states:
        torch.cuda.set_rng_state_all([state.cpu() for state in states["cuda"]])
