"""What every kernel must be."""

import pickle

import pytest
import torch
from torch.func import functional_call

from tests.registry.kernels import KERNELS


@pytest.fixture(params=KERNELS)
def case(request):
    return KERNELS[request.param]


def made(case, batch=(), **tkwargs):
    return case.make(torch.Size(batch)).to(**{"dtype": torch.float64, **tkwargs})


def test_it_is_symmetric_and_positive_semidefinite(case, generator, tkwargs):
    x = case.inputs(30, generator).to(**tkwargs)  # with repeated inputs where they are discrete
    covariance = made(case, **tkwargs)(x).to_dense()
    assert covariance.dtype == tkwargs["dtype"]
    assert covariance.device.type == tkwargs["device"].type
    tolerance = 50 * torch.finfo(tkwargs["dtype"]).eps
    torch.testing.assert_close(covariance, covariance.mT, rtol=tolerance, atol=tolerance)
    assert torch.linalg.eigvalsh(covariance).min() > -30 * tolerance
    torch.testing.assert_close(made(case, **tkwargs)(x, diag=True), covariance.diagonal())


def test_two_sets_of_inputs_are_blocks_of_one(case, generator, tkwargs):
    x = case.inputs(9, generator).to(**tkwargs)
    kernel = made(case, **tkwargs)
    torch.testing.assert_close(kernel(x[:4], x[4:]).to_dense(), kernel(x).to_dense()[:4, 4:])


@pytest.mark.parametrize("batch", [(2,), (2, 3)])
def test_a_batch_is_a_loop(case, batch, generator):
    number = torch.Size(batch).numel()
    x = torch.stack([case.inputs(5, generator) for _ in range(number)])
    many = made(case, batch)
    for parameter in many.parameters():  # each member its own hyperparameters
        noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
        parameter.data += noise
    together = many(x.view(*batch, *x.shape[1:])).to_dense().reshape(number, 5, 5)
    for i in range(number):
        alone = made(case)
        for parameter, all_of_them in zip(alone.parameters(), many.parameters(), strict=True):
            parameter.data = all_of_them.data.reshape(number, *parameter.shape)[i]
        torch.testing.assert_close(together[i], alone(x[i]).to_dense())


def test_gradients_are_finite_differences(case, generator):
    kernel, x = made(case), case.inputs(6, generator)
    names = [name for name, p in kernel.named_parameters() if p.requires_grad]
    assert names

    def covariance(*values):
        wanted = dict(zip(names, values, strict=True))
        return functional_call(kernel, wanted, (x, x[:4])).to_dense()

    values = tuple(dict(kernel.named_parameters())[name] for name in names)
    assert torch.autograd.gradcheck(covariance, values)


def test_pickling_and_loading_a_state_keep_it(case, generator):
    kernel, x = made(case), case.inputs(6, generator)
    for parameter in kernel.parameters():
        parameter.data += 0.3
    expected = kernel(x).to_dense()
    assert torch.equal(pickle.loads(pickle.dumps(kernel))(x).to_dense(), expected)
    other = made(case)
    assert not torch.equal(other(x).to_dense(), expected)
    other.load_state_dict(kernel.state_dict())
    assert torch.equal(other(x).to_dense(), expected)
