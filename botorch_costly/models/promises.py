"""Models that keep the promises of BoTorch and torch, or refuse them by name."""

import copy
from collections.abc import Mapping
from typing import Any

from botorch.models.model import Model
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, Likelihood
from torch import Tensor

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError, StateMismatchError, check

_FANTASIZE = "a model that takes batches of observations, such as TimeVaryingGP"


class NamedStates:
    """A module that refuses a state of other sizes by name, and is as it was after that."""

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Take over a state, as torch's modules do.

        Raises:
            StateMismatchError: If it lacks a part, has one too many, or one of another shape; the module
                is unchanged.
        """
        module: Any = super()  # a mixin of modules
        before = copy.deepcopy(module.state_dict())
        try:
            return module.load_state_dict(state_dict, *args, **kwargs)
        except (RuntimeError, KeyError, TypeError) as error:
            # Torch has taken over what fits by now.
            module.load_state_dict(before)
            name, expected, received = _differing(before, state_dict)
            full = f"state of {type(self).__name__}, {name}"
            raise StateMismatchError(full, expected, received) from error


def _differing(own: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[str, str, object]:
    """Return the first part that differs: its name, what was expected of it and what came."""
    for name in [*own, *(name for name in other if name not in own)]:
        expected, received = _form(own.get(name)), _form(other.get(name))
        if expected != received:
            return name, expected, received
    return "its parts", "those of a state of such a model", "others"


def _form(part: Any) -> str:
    if part is None:
        return "none"
    return f"shape {tuple(part.shape)}" if isinstance(part, Tensor) else type(part).__name__


class SingleOutput(NamedStates):
    """A model of one outcome."""

    def subset_output(self, idcs: list[int]) -> Any:
        """Return a copy: there is but one outcome.

        Raises:
            InvalidArgumentError: If another outcome is asked for.
        """
        check(list(idcs) in ([0], [-1]), "idcs", "[0], the one outcome", idcs, InvalidArgumentError)
        return copy.deepcopy(self)


class OneOutcome(SingleOutput, Model):
    """A model of one outcome that is conditioned on observations one set at a time."""

    @property
    def num_outputs(self) -> int:
        """One."""
        return 1

    def fantasize(self, X: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Refuse: fantasies are batches of observations, which this model does not take.

        Raises:
            InvalidArgumentError: Always.
        """
        raise InvalidArgumentError("fantasize", _FANTASIZE, type(self).__name__)

    def condition_on_observations(self, X: Tensor, Y: Tensor, **kwargs: Any) -> Any:
        """Refuse, where a model does not say how.

        Raises:
            InvalidArgumentError: Always.
        """
        expected = "a model that is conditioned by it"
        raise InvalidArgumentError("condition_on_observations", expected, type(self).__name__)


def check_further(X: Tensor, Y: Tensor, dim: int, options: Mapping[str, Any]) -> None:
    """Raise unless there are ``n x dim`` inputs and ``n x 1`` values of further observations, no more.

    Args:
        X: The inputs.
        Y: The values.
        dim: Columns of the inputs.
        options: Further arguments, which a model that has one noise for all would ignore.
    """
    fits = X.dim() == 2 and X.shape[-1] == dim and Y.shape == (len(X), 1)
    shapes = tuple(X.shape), tuple(Y.shape)
    check(fits, "X, Y", f"shapes (n, {dim}) and (n, 1)", shapes, InvalidShapeError)
    check_options(options)


def check_options(options: Mapping[str, Any], likelihood: Likelihood | None = None) -> None:
    """Raise where observations are conditioned on with options that are ignored, or without those needed.

    Args:
        options: The options of ``condition_on_observations``.
        likelihood: The likelihood of the model; one with known noise wants that of further observations.
    """
    known = isinstance(likelihood, FixedNoiseGaussianLikelihood)
    expected = "noise=, as that of the data is known" if known else "no options: all have one noise"
    right = "noise" in options if known else not options
    received = f"{sorted(options)}" if options else "none"
    check(right, "condition_on_observations", expected, received, InvalidArgumentError)
