"""What the random features of every kernel with a spectral density must be."""

import pickle

import pytest
import torch
from botorch.sampling.pathwise import gen_kernel_features

from tests.registry.kernels import KERNELS, SPECTRAL


@pytest.fixture(params=SPECTRAL)
def case(request):
    return KERNELS[request.param]


def made(case, batch=(), **tkwargs):
    return case.make(torch.Size(batch)).to(**{"dtype": torch.float64, **tkwargs})


def features_of(kernel, x, count, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return gen_kernel_features(kernel, num_inputs=x.shape[-1], num_outputs=count)


@pytest.mark.parametrize("count", [256, 4096, 65536])
def test_inner_products_converge_to_the_kernel(case, count, generator, tkwargs):
    x = case.inputs(8, generator).to(**tkwargs)
    kernel = made(case, **tkwargs)
    exact = kernel(x).to_dense().detach()
    features = features_of(kernel, x, count)(x).detach()
    assert features.shape == (8, count)
    assert features.dtype == tkwargs["dtype"]
    # Five standard errors of a mean of count / 2 cosines, whose variance is at most 1.
    error = 5 * exact.max() / (count / 2) ** 0.5
    assert (features @ features.mT - exact).abs().max() < error
    torch.testing.assert_close(features.square().sum(-1), exact.diagonal(), rtol=1e-4, atol=0)


@pytest.mark.parametrize("batch", [(2,), (2, 3)])
def test_each_of_a_batch_has_its_own_hyperparameters(case, batch, generator):
    number, count = torch.Size(batch).numel(), 16384
    x = torch.stack([case.inputs(5, generator) for _ in range(number)]).view(*batch, 5, -1)
    many = made(case, batch)
    for parameter in many.parameters():
        parameter.data += torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
    exact, features = many(x).to_dense().detach(), features_of(many, x, count)(x).detach()
    assert features.shape == (*batch, 5, count)
    error = 5 * exact.amax((-2, -1), keepdim=True) / (count / 2) ** 0.5
    assert ((features @ features.mT - exact).abs() < error).all()


def test_gradients_are_finite_differences(case, generator):
    kernel, x = made(case), case.inputs(3, generator)
    features = features_of(kernel, x, 16)
    kernel.requires_grad_(False)
    assert torch.autograd.gradcheck(features, (x.requires_grad_(),))
    parameter = next(p for name, p in kernel.named_parameters() if "forgetting" in name)

    def after(rate):
        return torch.func.functional_call(features, {names[id(parameter)]: rate}, (x.detach(),))

    names = {id(p): name for name, p in features.named_parameters()}
    assert torch.autograd.gradcheck(after, (parameter.detach().clone().requires_grad_(),))


def test_pickling_keeps_them(case, generator):
    kernel, x = made(case), case.inputs(4, generator)
    features = features_of(kernel, x, 16)
    assert torch.equal(pickle.loads(pickle.dumps(features))(x), features(x))
