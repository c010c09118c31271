"""Options and fixtures every test may use."""

import gc

import pytest
import torch

from botorch_costly.tuners.twins import left_open
from tests.processors import Processor

# It registers a device in torch as it is imported: only for those who ask for it, by -p tests.far.
collect_ignore = ["far"]


def pytest_addoption(parser):
    parser.addoption("--dtype", default="float64", choices=["float32", "float64"])
    parser.addoption("--device", default="cpu")
    said = "compute as another processor, with a relative error of at most this in double precision"
    parser.addoption("--perturb", type=float, default=0.0, help=said)
    said = "likewise in single precision"
    parser.addoption("--perturb-single", type=float, default=0.0, help=said)
    parser.addoption("--draw", type=int, default=0, help="which of many such processors")
    parser.addoption("--threads", type=int, default=1, help="of torch")


def pytest_configure(config):
    # One thread is faster than two for small problems on a busy machine.
    torch.set_num_threads(config.getoption("--threads"))
    double, single = config.getoption("--perturb"), config.getoption("--perturb-single")
    if double or single:
        sizes = {torch.float64: double, torch.float32: single}
        config.processor = Processor(sizes, config.getoption("--draw"))


def pytest_collection_finish(session):
    # Modules, items and their parameters live as long as the session, and each look through all of these
    # hundreds of thousands of objects takes half a second: some percent of a run. So it comes less often.
    # Freezing them would hide them from gc.get_referrers, which Hypothesis asks.
    youngest, middle, _ = gc.get_threshold()
    gc.set_threshold(youngest, middle, 200)
    # A session that one test leaves in a trial ends while another one runs, and would speak there.
    left_open._said.append(True)


@pytest.fixture
def tkwargs(request):
    """Keyword arguments for every tensor a test makes: its dtype and device."""
    return {
        "dtype": getattr(torch, request.config.getoption("--dtype")),
        "device": torch.device(request.config.getoption("--device")),
    }


@pytest.fixture
def generator(request):
    """A generator of the device in tests with ``tkwargs`` else of the CPU."""
    knows_device = "tkwargs" in request.fixturenames
    device = request.config.getoption("--device") if knows_device else "cpu"
    return torch.Generator(device=device).manual_seed(0)
