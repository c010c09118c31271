"""Base classes that implement the interfaces of BoTorch and torch, or raise clear errors."""

import copy
from collections.abc import Mapping
from typing import Any

from botorch.models.model import Model
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, Likelihood
from torch import Tensor

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError, StateMismatchError, check

_FANTASIZE = "a model that takes batches of observations, such as TimeVaryingGP"


class NamedStates:
    """A module that names the mismatch when it cannot load a state, and then keeps its own."""

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Load a state, like torch's modules.

        Raises:
            StateMismatchError: If a key is missing or unexpected, or a tensor has another shape; the
                module is unchanged.
        """
        module: Any = super()  # a mixin of modules
        before = copy.deepcopy(module.state_dict())
        try:
            return module.load_state_dict(state_dict, *args, **kwargs)
        except (RuntimeError, KeyError, TypeError) as error:
            # By now torch has loaded the entries that fit.
            module.load_state_dict(before)
            name, expected, received = _first_mismatch(before, state_dict)
            full = f"state of {type(self).__name__}, {name}"
            raise StateMismatchError(full, expected, received) from error


def _first_mismatch(own: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[str, str, object]:
    """Return name, expected and received form of the first entry that differs."""
    for name in {**own, **other}:
        expected, received = _form(own.get(name)), _form(other.get(name))
        if expected != received:
            return name, expected, received
    return "its parts", "those of a state of such a model", "others"


def _form(entry: Any) -> str:
    if entry is None:
        return "none"
    return f"shape {tuple(entry.shape)}" if isinstance(entry, Tensor) else type(entry).__name__


class SingleOutput(NamedStates):
    """A model of one outcome."""

    def subset_output(self, idcs: list[int]) -> Any:
        """Return a copy: there is only one outcome.

        Raises:
            InvalidArgumentError: If ``idcs`` is not the one outcome.
        """
        check(list(idcs) in ([0], [-1]), "idcs", "[0], the one outcome", idcs, InvalidArgumentError)
        return copy.deepcopy(self)


class OneOutcome(SingleOutput, Model):
    """A model of one outcome that cannot be conditioned on batches of observations."""

    @property
    def num_outputs(self) -> int:
        """One."""
        return 1

    def fantasize(self, X: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Raise: fantasies are batches of observations, which this model does not support.

        Raises:
            InvalidArgumentError: Always.
        """
        raise InvalidArgumentError("fantasize", _FANTASIZE, type(self).__name__)

    def condition_on_observations(self, X: Tensor, Y: Tensor, **kwargs: Any) -> Any:
        """Raise, unless a subclass overrides this.

        Raises:
            InvalidArgumentError: Always.
        """
        expected = "a model that is conditioned by it"
        raise InvalidArgumentError("condition_on_observations", expected, type(self).__name__)


def check_further(X: Tensor, Y: Tensor, dim: int, options: Mapping[str, Any]) -> None:
    """Raise unless further observations are ``n x dim`` inputs and ``n x 1`` values, without options.

    Args:
        X: The inputs.
        Y: The values.
        dim: Number of columns of the inputs.
        options: Further arguments, which a model with homoskedastic noise would ignore.
    """
    fits = X.dim() == 2 and X.shape[-1] == dim and Y.shape == (len(X), 1)
    shapes = tuple(X.shape), tuple(Y.shape)
    check(fits, "X, Y", f"shapes (n, {dim}) and (n, 1)", shapes, InvalidShapeError)
    check_options(options)


def check_options(options: Mapping[str, Any], likelihood: Likelihood | None = None) -> None:
    """Raise if an option of ``condition_on_observations`` would be ignored, or is missing.

    Args:
        options: The options of ``condition_on_observations``.
        likelihood: The model's likelihood; if it has known noise, the option ``noise`` is required.
    """
    received = f"{sorted(options)}" if options else "none"
    expected, fits = "no options: all have one noise", not options
    if isinstance(likelihood, FixedNoiseGaussianLikelihood):
        expected, fits = "noise=, as that of the data is known", "noise" in options
    check(fits, "condition_on_observations", expected, received, InvalidArgumentError)
