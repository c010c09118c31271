"""Steps do not wait for the device on which training losses are; readings are made on the CPU."""

import pytest
import torch

import botorch_costly as bc
from benchmarks.speed.waits import counting
from tests.validation.clock import Clock, falling


@pytest.fixture
def device(tkwargs):
    if tkwargs["device"].type not in ("far", "cuda"):
        pytest.skip("a CPU is not waited for: counted with --device far or cuda")
    return str(tkwargs["device"])


def _played(device, begin, count):
    """Return the steps that were read, and the waits of all others."""
    clock = Clock()
    validation, read, waits = bc.Validation(0.05, examples=200, clock=clock), [], []
    for step in range(begin, begin + count):
        loss = torch.tensor(falling(step), device=device)
        clock.seconds += 1.0
        if device == "cpu":
            is_due = validation.due(step, train_loss=loss)
        else:
            with counting(device) as waited:
                is_due = validation.due(step, train_loss=loss)
            waits.append(waited())
        if not is_due:
            continue
        read.append(step)
        while validation.examples:
            clock.seconds += 0.01 * len(validation.examples)
            validation.tell(torch.full((len(validation.examples),), falling(step), device=device))
    return read, waits


def test_steps_wait_once_for_sixteen_losses_and_decide_as_on_the_cpu(device):
    read, waits = _played(device, 10_000, 160)
    assert max(waits) <= 1
    assert sum(waits) <= 160 / 16 + 5  # and a few times where the belief is asked
    assert read == _played("cpu", 10_000, 160)[0]
