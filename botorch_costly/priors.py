"""Priors on parameters, registered so that the modules that have them can be pickled."""

from functools import partial

from gpytorch import Module
from gpytorch.priors import Prior
from torch import Tensor


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
