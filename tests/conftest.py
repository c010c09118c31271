"""Options and fixtures every test may use."""

import pytest
import torch


def pytest_addoption(parser):
    parser.addoption("--dtype", default="float64", choices=["float32", "float64"])
    parser.addoption("--device", default="cpu")
    said = "change what tests draw by so many times 1e-14 of it: no test may hang on the last bits"
    parser.addoption("--perturb", type=int, default=0, help=said)
    parser.addoption("--threads", type=int, default=1, help="of torch")


def pytest_configure(config):
    # One thread is faster than two for small problems on a busy machine.
    torch.set_num_threads(config.getoption("--threads"))


@pytest.fixture(autouse=True)
def perturbed_draws(request, monkeypatch):
    """With ``--perturb``: everything drawn is a little different, and alike where it was alike."""
    size = 1e-14 * request.config.getoption("--perturb")
    if not size:
        return

    def perturbed(draw):
        def drawn(*args, **kwargs):
            values = draw(*args, **kwargs)
            return values + size * values * (1e5 * values).sin()

        return drawn

    for name in ("rand", "randn", "linspace"):
        monkeypatch.setattr(torch, name, perturbed(getattr(torch, name)))


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
