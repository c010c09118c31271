"""Dtypes and devices, checked at the door."""

import pytest
import torch

from botorch_costly.device import check_device, check_dtype, largest_reward
from botorch_costly.errors import InvalidArgumentError


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_two_dtypes_are_known(dtype):
    assert check_dtype(dtype) is dtype


@pytest.mark.parametrize("dtype", [torch.float16, torch.int64, "float64", float, None])
def test_other_dtypes_are_named(dtype):
    with pytest.raises(
        InvalidArgumentError, match=r"dtype: Expected torch\.float32 or torch.float64"
    ):
        check_dtype(dtype)


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu")])
def test_the_device_of_this_machine(device):
    assert check_device(device) == torch.device("cpu")


@pytest.mark.parametrize("device", ["abacus", "cpu:x", "", "meta", "cuda:99", None, 2.5, ["cpu"]])
def test_devices_that_are_none_are_named(device):
    with pytest.raises(InvalidArgumentError, match="device: Expected a device that this machine"):
        check_device(device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is CUDA on this machine")
def test_cuda_is_named_where_there_is_none():
    for device in ("cuda", torch.device("cuda"), 0):
        with pytest.raises(
            InvalidArgumentError, match=r"device: Expected .* such as 'cpu'; Received"
        ):
            check_device(device)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA on this machine")
def test_cuda_is_found_where_there_is_some():
    assert check_device("cuda").type == "cuda"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_million_of_the_largest_rewards_have_a_finite_sum(dtype):
    largest = largest_reward(dtype)
    assert torch.full((10**6,), largest, dtype=dtype).sum().isfinite()
    assert 10**6 * largest**2 < float("inf")
