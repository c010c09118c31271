"""What every acquisition function must be."""

import pickle

import pytest
import torch

from tests.cases import slow
from tests.registry.acquisitions import ACQUISITIONS
from tests.registry.models import MODELS

pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")


@pytest.fixture(params=ACQUISITIONS)
def make(request):
    return ACQUISITIONS[request.param]


@pytest.fixture(params=["TimeVaryingGP", "StreamingGP matern52"])
def model(request):
    return lambda **tkwargs: MODELS[request.param].make(tkwargs, True).eval()


DOUBLE = {"dtype": torch.float64}


def points(generator, *batch):
    return torch.rand(
        *batch, 1, 2, generator=generator, dtype=torch.float64, device=generator.device
    )


@pytest.mark.parametrize("batch", [slow(((1,),)), (2, 3)])
def test_a_batch_is_a_loop(make, model, batch, generator):
    acquisition, X = make(model(**DOUBLE)), points(generator, *batch)
    together = acquisition(X)
    assert together.shape == batch
    one_by_one = torch.cat([acquisition(x.view(1, 1, 2)) for x in X.reshape(-1, 2)])
    torch.testing.assert_close(together.flatten(), one_by_one)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_and_device_are_kept(make, model, dtype, generator, tkwargs):
    X = points(generator, 4)
    kept = {"dtype": dtype, "device": tkwargs["device"]}
    value = make(model(**kept))(X.to(**kept))
    assert value.dtype == dtype
    assert value.device.type == tkwargs["device"].type
    expected = make(model(dtype=torch.float64, device=tkwargs["device"]))(X.to(tkwargs["device"]))
    tolerance = 1e-3 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(value.double(), expected, rtol=tolerance, atol=tolerance)


def test_gradients_are_finite_differences(make, model, generator):
    X = points(generator, 3).requires_grad_(True)
    assert torch.autograd.gradcheck(make(model(**DOUBLE)), (X,))


def test_pickling_keeps_it(make, model, generator):
    acquisition, X = make(model(**DOUBLE)), points(generator, 3)
    assert torch.equal(pickle.loads(pickle.dumps(acquisition))(X), acquisition(X))


def test_asking_changes_nothing(make, model, generator):
    acquisition, X = make(model(**DOUBLE)), points(generator, 3)
    asked, state = X.clone(), torch.get_rng_state()
    first = acquisition(X)
    assert torch.equal(acquisition(X), first)
    assert torch.equal(X, asked)
    assert torch.equal(torch.get_rng_state(), state)
