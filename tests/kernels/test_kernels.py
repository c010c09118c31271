"""Both kernels under GPyTorch's own law book, and against their definitions."""

import pickle
from unittest import TestCase

import pytest
import torch
from gpytorch.kernels import MaternKernel
from gpytorch.priors import LogNormalPrior
from gpytorch.test.base_kernel_test_case import BaseKernelTestCase

from botorch_costly.errors import InvalidArgumentError
from botorch_costly.kernels import ArmKernel, ForgettingKernel


class TestForgettingKernelLaws(TestCase, BaseKernelTestCase):
    def create_kernel_no_ard(self, **kwargs):
        return ForgettingKernel(forgetting=0.3, **kwargs)


class TestArmKernelLaws(TestCase, BaseKernelTestCase):
    def create_kernel_no_ard(self, **kwargs):
        return ArmKernel(**kwargs)


def rounds(tkwargs):
    return torch.tensor([[0.0], [0.0], [1.0], [3.5], [40.0]], **tkwargs)


@pytest.mark.parametrize("forgetting", [0.003, 0.05, 0.5, 0.99])
def test_it_is_a_matern_half_kernel(forgetting, tkwargs):
    kernel = ForgettingKernel(forgetting).to(**tkwargs)
    kernel.forgetting = forgetting
    matern = MaternKernel(nu=0.5).to(**tkwargs)
    matern.lengthscale = -2 / torch.log1p(-torch.tensor(forgetting, dtype=torch.float64))
    t = rounds(tkwargs)
    # The retained fraction, 1 - forgetting, has fewer digits than the rate.
    tolerance = 4e-14 / (1 - forgetting) if tkwargs["dtype"] == torch.float64 else 1e-5
    torch.testing.assert_close(
        kernel(t).to_dense(), matern(t).to_dense(), atol=tolerance, rtol=tolerance
    )


@pytest.mark.parametrize(("forgetting", "expected"), [(0.0, 1.0), (1.0, 0.0)])
def test_the_limits_are_exact(forgetting, expected, tkwargs):
    kernel = ForgettingKernel(forgetting).to(**tkwargs)
    t = rounds(tkwargs)
    covariance = kernel(t).to_dense()
    same_round = t == t.mT
    assert (covariance[same_round] == 1).all()
    assert (covariance[~same_round] == expected).all()
    assert not kernel.raw_forgetting.requires_grad


def test_the_state_space_form_is_the_kernel(tkwargs):
    kernel = ForgettingKernel(torch.tensor([[[0.1]], [[0.4]]]), batch_shape=torch.Size([2]))
    kernel = kernel.to(**tkwargs)
    elapsed = torch.tensor([3.0, 3.0], **tkwargs)
    keep, innovation = kernel.transition(elapsed)
    t = torch.tensor([[0.0], [3.0]], **tkwargs)
    torch.testing.assert_close(keep, kernel(t).to_dense()[:, 0, 1])
    torch.testing.assert_close(keep.square() + innovation, torch.ones_like(keep))


def test_the_rate_is_learnable_with_a_prior():
    prior = LogNormalPrior(-4.0, 1.0)
    kernel = ForgettingKernel(0.2, forgetting_prior=prior).double()
    loss = kernel(rounds({"dtype": torch.float64})).to_dense().sum()
    _, module, _, closure, setting = next(iter(kernel.named_priors()))
    (loss - prior.log_prob(closure(module)).sum()).backward()
    assert kernel.raw_forgetting.grad.abs().item() > 0
    setting(kernel, 0.25)
    assert kernel.forgetting.item() == pytest.approx(0.25)
    copy = pickle.loads(pickle.dumps(kernel))
    assert copy.forgetting.item() == kernel.forgetting.item()


def test_the_gradient_of_the_rate_is_the_finite_difference():
    t = rounds({"dtype": torch.float64})
    raw = torch.tensor([[-1.2]], dtype=torch.float64, requires_grad=True)

    def covariance(value):
        kernel = ForgettingKernel(0.2).double()
        del kernel.raw_forgetting
        kernel.raw_forgetting = value
        return kernel.forward(t, t)

    assert torch.autograd.gradcheck(covariance, (raw,))


@pytest.mark.parametrize("forgetting", [-0.1, 1.5, float("nan")])
def test_a_rate_outside_its_range_is_named(forgetting):
    with pytest.raises(InvalidArgumentError, match=r"forgetting: Expected a rate in \[0, 1\]"):
        ForgettingKernel(forgetting)


def test_arms_with_several_columns_agree_only_when_all_columns_do(tkwargs):
    x = torch.tensor([[0.0, 1.0], [0.0, 2.0], [0.0, 1.0]], **tkwargs)
    expected = torch.tensor([[1.0, 0, 1], [0, 1, 0], [1, 0, 1]], **tkwargs)
    torch.testing.assert_close(ArmKernel().to(**tkwargs)(x).to_dense(), expected)
