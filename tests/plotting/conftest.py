"""Fixtures of the tests of pictures."""

import pytest
import torch

from tests.plotting.drawing import decision


@pytest.fixture
def decisions():
    return [decision(i) for i in range(6)]


@pytest.fixture
def belief():
    x = torch.linspace(0, 1, 11)
    return x, x.square(), 0.1 + x
