"""What subnormal values do to an optimizer: units are inverted without a NaN in what is kept."""

import itertools
import math

import pytest
import torch

from botorch_costly.models.cached_rows import noise_of
from tests.cases import quick
from tests.registry.optimizers import BY_DEFAULT, OPTIMIZERS
from tests.tuners.online.states import leaves


def tensors(optimizer):
    found = [leaf for leaf in leaves(optimizer.state_dict()) if isinstance(leaf, torch.Tensor)]
    return [leaf for leaf in found if leaf.is_floating_point()]


@pytest.mark.parametrize("values", [(1e-320, 0.0, 5e-324), (-1e-310, 1e-309, 3.0)])
@pytest.mark.parametrize("name", quick(OPTIMIZERS, *BY_DEFAULT))
def test_no_nan_is_kept(name, values):
    case = OPTIMIZERS[name]
    optimizer = case.make(0)
    for _, value in zip(range(6), itertools.cycle(values), strict=False):
        case.tell(optimizer, optimizer.ask(), value)
    assert not any(bool(kept.isnan().any()) for kept in tensors(optimizer))
    floats = [v for v in optimizer.ask().config.values() if isinstance(v, float)]
    assert all(math.isfinite(value) for value in floats)


def test_rows_without_a_variance_have_no_noise_at_an_infinite_slope():
    variances = torch.tensor([0.0, 1e-320, 4.0], dtype=torch.float64)
    assert noise_of(variances, math.inf)[0] == 0
    assert bool(noise_of(variances, math.inf).isfinite().all())
    assert noise_of(variances, 3.0)[2] == 36
