"""The kernel of optima that move with the fidelity."""

import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from gpytorch.kernels import MaternKernel, RBFKernel
from gpytorch.mlls import ExactMarginalLogLikelihood

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.kernels import ShiftKernel
from botorch_costly.models import SubsetGP

NUMBERS = {"dtype": torch.float64}


def test_it_is_the_base_at_what_was_shifted():
    base = MaternKernel(2.5, ard_num_dims=2).double()
    kernel = ShiftKernel(base, configs=(0, 2), fidelities=(1, 3), moving=(2,)).double()
    kernel.shift = torch.tensor([[0.3], [-0.2]])
    rows = torch.rand(7, 4, generator=torch.Generator().manual_seed(0), **NUMBERS)
    moved = rows[:, [0, 2]].clone()
    for row, shifted in zip(rows, moved, strict=True):  # one number after the other
        shifted[1] += 0.3 * (1 - row[1]) - 0.2 * (1 - row[3])
    torch.testing.assert_close(kernel(rows).to_dense(), base(moved).to_dense())


def test_nothing_moves_at_the_target():
    base = RBFKernel().double()
    kernel = ShiftKernel(base, configs=(0,), fidelities=(1,)).double()
    kernel.shift = 5.0
    configs = torch.rand(5, 1, generator=torch.Generator().manual_seed(0), **NUMBERS)
    rows = torch.cat([configs, torch.ones_like(configs)], -1)
    torch.testing.assert_close(kernel(rows).to_dense(), base(configs).to_dense())


@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")
@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.OptimizationWarning")
def test_a_fit_finds_how_far_the_optimum_moves():
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(60, 2, generator=generator, **NUMBERS)
    optimum = 0.3 + 0.4 * (1 - X[:, 1:])  # at .3 of the whole, at .7 of the least
    noise = 0.02 * torch.randn(60, 1, generator=generator, **NUMBERS)
    Y = -4 * (X[:, :1] - optimum).square() + noise
    model = SubsetGP(X, (Y - Y.mean()) / Y.std(), moving=(0,))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    (shift,) = (m.shift for m in model.modules() if isinstance(m, ShiftKernel))
    assert shift.item() == pytest.approx(-0.4, abs=0.1)


def test_what_makes_no_sense_is_refused():
    for options in ({"configs": ()}, {"fidelities": ()}, {"moving": (1,)}):
        with pytest.raises(InvalidShapeError):
            ShiftKernel(RBFKernel(), **{"configs": (0,), "fidelities": (1,), **options})
    with pytest.raises(InvalidArgumentError):
        ShiftKernel(RBFKernel(), configs=(0,), fidelities=(1,), spread=0.0)
