import pytest
import torch

from tests.acquisition.beliefs import dense, streaming


@pytest.fixture(params=[dense, streaming])
def model(request):
    return request.param()


@pytest.fixture
def points():
    generator = torch.Generator().manual_seed(9)
    return torch.rand(7, 1, 2, generator=generator, dtype=torch.float64)
