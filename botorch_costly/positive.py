"""Positive numbers of modules: learnt without bounds, read and set as they are."""

from typing import Any

import torch
from gpytorch import Module
from gpytorch.constraints import GreaterThan, Positive
from gpytorch.priors import Prior
from torch import Tensor, nn

from botorch_costly.errors import check
from botorch_costly.priors import register_prior


class PositiveNumber:
    """A positive property of modules, stored as a raw parameter that may be any number.

    The raw parameter is the logarithm. With a lower bound it is the inverse softplus of what exceeds the
    bound. Declare the property in the class, and call ``add`` in the constructor.

    Args:
        doc: The property's own docstring, with its shape.
    """

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def add(
        self,
        module: Module,
        start: float | Tensor,
        shape: torch.Size,
        *,
        prior: Prior | None = None,
        least: float = 0.0,
    ) -> None:
        """Give a module the raw parameter, with a prior and a lower bound.

        Args:
            module: An instance of the class.
            start: The first value.
            shape: Of the parameter.
            prior: Of the value; none if omitted.
            least: The lower bound.

        Raises:
            InvalidArgumentError: If the first value is not positive.
        """
        module.register_parameter(f"raw_{self._name}", nn.Parameter(torch.zeros(shape)))
        constraint = GreaterThan(least) if least else Positive(torch.exp, torch.log)
        module.register_constraint(f"raw_{self._name}", constraint)
        register_prior(module, self._name, prior)
        self.__set__(module, start)

    def __get__(self, module: Any, owner: type) -> Any:
        if module is None:
            return self
        constraint = getattr(module, f"raw_{self._name}_constraint")
        return constraint.transform(getattr(module, f"raw_{self._name}"))

    def __set__(self, module: Any, value: float | Tensor) -> None:
        raw = getattr(module, f"raw_{self._name}")
        wanted = torch.as_tensor(value, dtype=torch.float64, device=raw.device)
        check(bool((wanted > 0).all()), self._name, "a number > 0", value)
        constraint = getattr(module, f"raw_{self._name}_constraint")
        inside = wanted.clamp_min(float(constraint.lower_bound) * (1 + 1e-6))
        raw_value = constraint.inverse_transform(inside).to(raw.dtype)
        module.initialize(**{f"raw_{self._name}": raw_value.expand_as(raw)})
