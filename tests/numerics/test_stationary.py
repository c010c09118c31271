"""The plain covariances against GPyTorch's kernel modules, and their gradients."""

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel

from botorch_costly.errors import InvalidArgumentError
from botorch_costly.kernels import ArmKernel
from botorch_costly.numerics.radial import FAMILIES, check_family
from botorch_costly.numerics.stationary import Stationary, covariance, information_share
from tests.oracles import knowledge_gradient as oracle

NU = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
SMOOTH = [*NU, "rbf"]


def kernel(family, tkwargs, lengthscale=(0.3, 0.9)):
    return Stationary(family, torch.tensor(lengthscale, **tkwargs), torch.tensor(1.7, **tkwargs))


def gpytorch_kernel(family, tkwargs):
    base = MaternKernel(NU[family], ard_num_dims=2) if family in NU else RBFKernel(ard_num_dims=2)
    module = ScaleKernel(base).to(**tkwargs)
    module.outputscale = torch.tensor(1.7, **tkwargs)
    base.lengthscale = torch.tensor([0.3, 0.9], **tkwargs)
    return module


@pytest.mark.parametrize("family", SMOOTH)
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_it_is_gpytorchs_kernel(family, batch, generator, tkwargs):
    x1 = torch.rand(*batch, 7, 2, generator=generator, **tkwargs)
    x2 = torch.rand(*batch, 5, 2, generator=generator, **tkwargs)
    ours = covariance(kernel(family, tkwargs), x1, x2)
    assert ours.shape == (*batch, 7, 5)
    assert ours.dtype == tkwargs["dtype"]
    theirs = gpytorch_kernel(family, tkwargs)(x1, x2).to_dense()
    tolerance = 1e-12 if tkwargs["dtype"] == torch.float64 else 1e-5
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("family", SMOOTH)
def test_batches_of_points_broadcast(family, generator):
    x1 = torch.rand(4, 1, 6, 2, generator=generator, device=generator.device, dtype=torch.float64)
    x2 = torch.rand(3, 5, 2, generator=generator, device=generator.device, dtype=torch.float64)
    k = kernel(family, {"dtype": torch.float64})
    together = covariance(k, x1, x2)
    for i in range(4):
        for j in range(3):
            torch.testing.assert_close(together[i, j], covariance(k, x1[i, 0], x2[j]))


@pytest.mark.parametrize("family", SMOOTH)
def test_one_lengthscale_serves_all_columns(family, generator):
    x = torch.rand(6, 2, generator=generator, device=generator.device, dtype=torch.float64)
    one = covariance(kernel(family, {"dtype": torch.float64}, (0.4,)), x, x)
    two = covariance(kernel(family, {"dtype": torch.float64}, (0.4, 0.4)), x, x)
    torch.testing.assert_close(one, two, rtol=1e-15, atol=0)


@pytest.mark.parametrize("family", SMOOTH)
def test_gradients_are_finite_at_coincident_points(family):
    x = torch.full((4, 2), 0.3, dtype=torch.float64, requires_grad=True)
    lengthscale = torch.tensor([0.3, 0.9], dtype=torch.float64, requires_grad=True)
    scale = torch.tensor(1.7, dtype=torch.float64, requires_grad=True)
    value = covariance(Stationary(family, lengthscale, scale), x, x.detach().clone())
    value.sum().backward()
    assert (value == 1.7).all()
    assert (x.grad == 0).all()
    assert (lengthscale.grad == 0).all()
    assert scale.grad == 16


@pytest.mark.parametrize("family", SMOOTH)
def test_gradients_are_finite_differences_elsewhere(family, generator):
    def value(x1, x2, lengthscale, scale):
        return covariance(Stationary(family, lengthscale, scale), x1, x2)

    x1 = torch.rand(
        3, 2, generator=generator, device=generator.device, dtype=torch.float64, requires_grad=True
    )
    x2 = torch.rand(
        4, 2, generator=generator, device=generator.device, dtype=torch.float64, requires_grad=True
    )
    lengthscale = torch.tensor([0.3, 0.9], dtype=torch.float64, requires_grad=True)
    scale = torch.tensor(1.7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(value, (x1, x2, lengthscale, scale))


def test_arms_are_the_arm_kernel(tkwargs):
    x = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], **tkwargs)
    expected = ArmKernel(1.7).to(**tkwargs)(x, x[1:]).to_dense()
    torch.testing.assert_close(covariance(kernel("arms", tkwargs), x, x[1:]), expected)


def test_every_family_is_tested():
    assert set(SMOOTH) == set(FAMILIES)


def test_an_unknown_family_is_named():
    assert check_family("rbf") == "rbf"
    with pytest.raises(InvalidArgumentError, match=r"kernel: Expected one of .*Received 'matern'"):
        check_family("matern")


# -- information share ------------------------------------------------------------


def positive(n, seed=0):
    root = torch.randn(n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return root @ root.mT


def test_information_share_is_its_twin_and_counts_contrasts_by_their_eigenvalues():
    cov = positive(7)
    assert information_share(cov) == pytest.approx(
        oracle.information_share(cov.tolist()), rel=1e-12
    )
    centring = torch.eye(7, dtype=torch.float64) - 1 / 7
    eigenvalues = torch.linalg.eigvalsh(centring @ cov @ centring)
    expected = eigenvalues.square().sum() / eigenvalues.sum() ** 2
    assert information_share(cov) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_independent_arms_are_told_apart_by_one_contrast_less_than_there_are_arms(n):
    assert information_share(torch.eye(n, dtype=torch.float64)) == pytest.approx(1 / (n - 1))


def test_a_common_component_carries_no_information():
    cov = positive(6)
    for common in (0.0, 0.3, 1e3):
        assert information_share(2.5 * (cov + common)) == pytest.approx(
            information_share(cov), rel=1e-9
        )


@pytest.mark.parametrize("cov", [torch.ones(1, 1), torch.ones(9, 9).double() / 3])
def test_where_nothing_tells_points_apart_nothing_is_covered(cov):
    assert information_share(cov) == 0


def test_more_dimensions_leave_more_to_be_told():
    generator = torch.Generator().manual_seed(0)
    shares = []
    for dim in (1, 2, 4, 8):
        points = torch.rand(
            200, dim, generator=generator, device=generator.device, dtype=torch.float64
        )
        one = torch.ones((), dtype=torch.float64)
        shares.append(
            information_share(
                covariance(Stationary("matern52", 0.35 * dim**0.5 * one, one), points, points)
            )
        )
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < 0.2 * shares[0]
