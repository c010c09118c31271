"""Priors on parameters, registered so that the modules that have them can be pickled."""

from functools import partial
from typing import TypeVar

import torch
from gpytorch import Module
from gpytorch.priors import LogNormalPrior, NormalPrior, Prior
from torch import Tensor

P = TypeVar("P", LogNormalPrior, NormalPrior)


def made(kind: type[P], loc: float | Tensor, scale: float | Tensor) -> P:
    """Return a prior whose numbers are in single precision, whatever the default dtype is.

    GPyTorch makes them in the default dtype, which is the user's, and does not convert all of them with
    their module.

    Args:
        kind: The class of the prior.
        loc: Its mean, of a log-normal one that of the logarithm.
        scale: Its standard deviation, of a log-normal one that of the logarithm.

    Example:
        >>> made(NormalPrior, 0.0, 0.2).scale.dtype
        torch.float32
    """
    return kind(*(torch.as_tensor(one, dtype=torch.float32) for one in (loc, scale)))


def register_prior(module: Module, name: str, prior: Prior | None) -> None:
    """Put a prior on a property of a module that has a setter; do nothing without a prior.

    GPyTorch reads and sets what it is only told the name of by local functions, which have no pickle.

    Args:
        module: What has the property.
        name: Of the property; the prior is called ``<name>_prior``.
        prior: To be registered.
    """
    if prior is not None:
        module.register_prior(f"{name}_prior", prior, partial(_read, name), partial(_assign, name))


def _read(name: str, module: Module) -> Tensor:
    return getattr(module, name)


def _assign(name: str, module: Module, value: Tensor | float) -> None:
    setattr(module, name, value)
