"""Priors in single precision, and their registration on modules that can be pickled."""

from functools import partial
from typing import TypeVar

import torch
from gpytorch import Module
from gpytorch.priors import LogNormalPrior, NormalPrior, Prior
from torch import Tensor

P = TypeVar("P", LogNormalPrior, NormalPrior)


def made(kind: type[P], loc: float | Tensor, scale: float | Tensor) -> P:
    """Return a prior with float32 parameters, whatever the default dtype is.

    GPyTorch uses the default dtype, which is the user's choice, and does not convert all parameters of a
    prior with its module.

    Args:
        kind: The class of the prior.
        loc: Mean of a normal variable, or of the logarithm of a log-normal one.
        scale: Standard deviation of a normal variable, or of the logarithm of a log-normal one.

    Example:
        >>> made(NormalPrior, 0.0, 0.2).scale.dtype
        torch.float32
    """
    return kind(*(torch.as_tensor(number, dtype=torch.float32) for number in (loc, scale)))


def register_prior(module: Module, name: str, prior: Prior | None) -> None:
    """Register a prior on a settable property of a module; without a prior, do nothing.

    Given a name alone, GPyTorch would read and set the property by local functions, which cannot be
    pickled.

    Args:
        module: Module with the property.
        name: Name of the property; the prior is called ``<name>_prior``.
        prior: The prior, or None.
    """
    if prior is not None:
        module.register_prior(f"{name}_prior", prior, partial(_read, name), partial(_assign, name))


def _read(name: str, module: Module) -> Tensor:
    return getattr(module, name)


def _assign(name: str, module: Module, value: Tensor | float) -> None:
    setattr(module, name, value)
