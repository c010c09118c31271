"""Values that ``Validation.tell`` gets: a metric of the whole set, or one value for each example."""

from collections.abc import Sequence

import torch
from torch import Tensor

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError, check
from botorch_costly.plain import as_number, is_list

Values = float | Tensor | Sequence[float]


def checked(value: Values, due: int, *, has_examples: bool) -> Tensor:
    """Return a metric, shape ``()``, or those of the examples that are due, ``(due,)``, in float64.

    Raises:
        InvalidArgumentError: If a value is no number, or no examples are due.
        InvalidShapeError: If there is not one value for each example that is due.
    """
    if not (has_examples and is_list(value)):
        return torch.tensor(as_number("value", value), dtype=torch.float64)
    check(due > 0, "tell", "a number, for no examples are due", "values of examples")
    try:
        values = torch.as_tensor(value, dtype=torch.float64, device="cpu").detach()
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise InvalidArgumentError("value", "a number for each example", value) from error
    expected = f"{due} values, one for each of validation.examples"
    shape = tuple(values.shape)
    check(shape == (due,), "value", expected, f"shape {shape}", InvalidShapeError)
    return values
