"""Shares of examples are told from other numbers, in single precision too."""

import math

import pytest
import torch

from botorch_costly.rewards.shares import examples_of


@pytest.mark.parametrize("examples", [7, 68, 500, 4973, 19_997])
@pytest.mark.parametrize("of_errors", [False, True])
def test_the_number_of_examples_is_found_in_single_precision(examples, of_errors):
    generator = torch.Generator().manual_seed(0)
    right = torch.randint(examples + 1, (30,), generator=generator)
    accuracy = right.to(torch.float32) / examples
    values = (1 - accuracy if of_errors else accuracy).tolist()
    assert examples_of(values) == examples


def test_a_mean_of_batches_is_a_share_too():
    generator = torch.Generator().manual_seed(1)
    batches = torch.randint(65, (20, 12), generator=generator).to(torch.float32) / 64
    assert examples_of(batches.mean(1).tolist()) == 768


@pytest.mark.parametrize("number", [5, 12])
def test_losses_are_no_shares(number):
    generator = torch.Generator().manual_seed(2)
    for _ in range(50):
        losses = torch.rand(number, generator=generator, dtype=torch.float64)
        assert examples_of(losses.tolist()) is None


def test_a_rounded_loss_is_a_share_of_a_power_of_ten():
    assert examples_of([round(math.exp(-0.1 * t), 3) for t in range(12)]) == 1000


@pytest.mark.parametrize("values", [[], [0.5] * 9, [0.1, 0.2, 0.3, 0.4], [0.5, 1.5, 0.1, 0.2, 0.3]])
def test_few_values_and_those_beyond_1_tell_nothing(values):
    assert examples_of(values) is None
