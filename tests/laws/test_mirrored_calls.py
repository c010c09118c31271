"""What tests call on the CPU is called on the device as well, and held against it.

With ``-p tests.far --device far``: see ``tests/far/mirror.py``.
"""

import pytest
import torch


@pytest.fixture
def mirrored(request):
    if request.config.getoption("--device") != "far":
        pytest.skip("calls are mirrored with -p tests.far --device far")
    from tests.far.mirror import mirrored

    return mirrored


def with_a_constant_of_the_cpu(x):
    return x + torch.ones(len(x))


def read(x):
    return x.cpu()


def of_the_device(x):
    return x + (1 if x.device.type == "cpu" else 2)


def on_the_cpu_alone(x):
    if x.device.type != "cpu":
        raise ValueError
    return x


FAULTS = {
    with_a_constant_of_the_cpu: "two devices",
    read: "returns a tensor of the CPU",
    of_the_device: "of_the_device",
    on_the_cpu_alone: "ValueError",
}


@pytest.mark.parametrize(("function", "said"), FAULTS.items())
def test_a_fault_on_the_device_is_found(function, said, mirrored):
    with pytest.raises(AssertionError, match=said):
        mirrored(function)(torch.zeros(3))


def doubled(x, function=None, generator=None):
    noise = torch.rand(len(x), generator=generator, device=x.device)
    return 2 * x + noise + (0 if function is None else function(x))


def test_what_computes_where_its_arguments_are_passes_and_is_called_there_once(mirrored):
    called = []

    def twice(x, function, generator):
        called.append(x.device.type)
        return doubled(x, function, generator)

    shift = torch.arange(3.0)  # a function of a test computes on the CPU
    for seed in range(3):
        x, ours, theirs = torch.ones(3), *(torch.Generator().manual_seed(seed) for _ in range(2))
        found = mirrored(twice)(x, lambda at: at + shift, ours)
        torch.testing.assert_close(found, doubled(x, lambda at: at + shift, theirs))
    assert called == ["far", "far", "cpu", "cpu", "cpu"]


def test_a_refusal_is_the_same(mirrored):
    def refusing(x):
        raise ValueError("not this")

    with pytest.raises(ValueError, match="not this"):
        mirrored(refusing)(torch.ones(2))
