"""Properties of modules for learnt numbers, which are stored as unconstrained raw parameters."""

from typing import Any

import torch
from gpytorch import Module
from gpytorch.constraints import GreaterThan, Positive
from gpytorch.priors import Prior
from torch import Tensor, nn

from botorch_costly.errors import check
from botorch_costly.priors import register_prior


class FreeNumber:
    """A property for any number, stored as a raw parameter of the same value.

    Declare the property in the class of the module, and call ``add`` in its constructor.

    Args:
        doc: Docstring of the property, with its shape.
    """

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name, self._raw_name = name, f"raw_{name}"

    def add(
        self,
        module: Module,
        start: float | Tensor,
        shape: torch.Size,
        *,
        prior: Prior | None = None,
    ) -> None:
        """Register the raw parameter of a module, with a prior.

        Args:
            module: An instance of the class.
            start: The first value.
            shape: Shape of the parameter.
            prior: Prior of the value; none if omitted.

        Raises:
            InvalidArgumentError: If the first value is not one that the property can have.
        """
        self._register(module, shape, prior)
        self.__set__(module, start)

    def _register(self, module: Module, shape: torch.Size, prior: Prior | None) -> None:
        module.register_parameter(self._raw_name, nn.Parameter(torch.zeros(shape)))
        register_prior(module, self._name, prior)

    def __get__(self, module: Any, owner: type) -> Any:
        return self if module is None else self._value(module)

    def __set__(self, module: Any, value: float | Tensor) -> None:
        raw = getattr(module, self._raw_name)
        number = torch.as_tensor(value, dtype=torch.float64, device=raw.device)
        raw_value = self._raw_value(module, number).to(raw.dtype)
        module.initialize(**{self._raw_name: raw_value.expand_as(raw)})

    def _value(self, module: Any) -> Tensor:
        raw: Tensor = getattr(module, self._raw_name)
        return raw

    def _raw_value(self, module: Any, number: Tensor) -> Tensor:
        check(bool(number.isfinite().all()), self._name, "a finite number", number)
        return number


class PositiveNumber(FreeNumber):
    """A property for a positive number, stored as an unconstrained raw parameter.

    The raw parameter is the logarithm. With a lower bound it is the inverse softplus of the difference
    from the bound.

    Args:
        doc: Docstring of the property, with its shape.
        least: Lower bound; smaller positive numbers are raised to it.
    """

    def __init__(self, doc: str, *, least: float = 0.0) -> None:
        super().__init__(doc)
        self._least = least

    def _register(self, module: Module, shape: torch.Size, prior: Prior | None) -> None:
        super()._register(module, shape, prior)
        constraint = GreaterThan(self._least) if self._least else Positive(torch.exp, torch.log)
        module.register_constraint(self._raw_name, constraint)

    def _value(self, module: Any) -> Tensor:
        value: Tensor = self._constraint(module).transform(super()._value(module))
        return value

    def _raw_value(self, module: Any, number: Tensor) -> Tensor:
        check(bool((number > 0).all()), self._name, "a number > 0", number)
        constraint = self._constraint(module)
        inside = number.clamp_min(float(constraint.lower_bound) * (1 + 1e-6))
        raw: Tensor = constraint.inverse_transform(inside)
        return raw

    def _constraint(self, module: Any) -> Any:
        return getattr(module, f"{self._raw_name}_constraint")
