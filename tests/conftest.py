"""Options and fixtures every test may use."""

import pytest
import torch

# One thread is faster than two for small problems on a busy machine.
torch.set_num_threads(1)


def pytest_addoption(parser):
    parser.addoption("--dtype", default="float64", choices=["float32", "float64"])
    parser.addoption("--device", default="cpu")


@pytest.fixture
def tkwargs(request):
    """Keyword arguments for every tensor a test makes: its dtype and device."""
    return {
        "dtype": getattr(torch, request.config.getoption("--dtype")),
        "device": torch.device(request.config.getoption("--device")),
    }


@pytest.fixture
def generator(tkwargs):
    return torch.Generator(device=tkwargs["device"]).manual_seed(0)
