"""Numbers of any library, and what is none."""

import numpy as np
import pytest
import torch

from botorch_costly.errors import InvalidArgumentError
from botorch_costly.plain import as_number


@pytest.mark.parametrize(
    "value", [2, 2.0, torch.tensor(2.0), torch.tensor([2]), np.float32(2), np.array(2)], ids=repr
)
def test_scalars_of_any_library_are_numbers(value):
    number = as_number("reward", value)
    assert type(number) is float
    assert number == 2.0


TRUTHS = [True, np.True_, np.array(True), torch.tensor(True)]
NONE = ["2", b"2", None, 2j, torch.ones(2), 10**400, *TRUTHS]


@pytest.mark.parametrize("value", NONE, ids=repr)
def test_what_is_no_number_is_named(value):
    with pytest.raises(InvalidArgumentError, match="reward: Expected a number; Received"):
        as_number("reward", value)
