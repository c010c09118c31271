"""Copies of states share nothing, and what stopped being finite is found."""

from collections import Counter, OrderedDict

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from botorch_costly.states import copied, have_diverged, nans


def test_a_copy_shares_no_tensor_and_keeps_kinds():
    named = OrderedDict(w=torch.ones(2), more=[torch.zeros(1), (torch.ones(1), "text", None)])
    named._metadata = {"version": 2}
    found = copied(named)
    named["w"].fill_(5.0)
    named["more"][0].fill_(5.0)
    named["more"][1][0].fill_(5.0)
    assert type(found) is OrderedDict
    assert found._metadata == {"version": 2}
    assert found["w"].tolist() == [1.0, 1.0]
    assert found["more"][0].item() == 0
    assert found["more"][1][0].item() == 1
    assert found["more"][1][1:] == ("text", None)


def test_lists_of_numbers_are_copied_and_looked_into_no_further():
    state = {
        "groups": [{"params": [0, 1], "betas": (0.9, 0.999)}],
        "rows": [[1, 2], [torch.ones(1)]],
    }
    found = copied(state)
    state["groups"][0]["params"].append(2)
    state["rows"][0].append(3)
    assert found["groups"] == [{"params": [0, 1], "betas": (0.9, 0.999)}]
    assert found["rows"][0] == [1, 2]
    broken = copied(found)
    broken["rows"][1][0].fill_(torch.nan)
    assert have_diverged(broken, found)
    assert nans(broken) == [("rows", 1, 0)]
    assert nans(broken["rows"][1][0]) == [()]


def test_a_counter_keeps_its_counts():
    assert copied({"milestones": Counter([3, 3, 5])}) == {"milestones": Counter([3, 3, 5])}


def test_a_network_without_shapes_yet_can_be_copied():
    copied(torch.nn.LazyLinear(2).state_dict())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_was_finite_and_is_not_has_diverged(value):
    mask = torch.full((2,), -float("inf"))
    before = {"net": {"w": torch.ones(3), "mask": mask}, "steps": [torch.tensor(3)]}
    now = copied(before)
    assert not have_diverged(now, before)
    now["net"]["w"][1] = value
    assert have_diverged(now, before)
    assert not have_diverged(now, now)  # it was so before
    assert not have_diverged({}, before)
    assert not have_diverged({"other": torch.full((1,), value)}, before)


def test_tied_weights_stay_tied_and_others_apart():
    network = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    network[1].weight = network[0].weight
    state = network.state_dict()
    row = state["0.weight"][0]  # begins where the matrix does
    found = copied({**state, "row": row})
    assert found["0.weight"] is found["1.weight"]
    assert found["row"].data_ptr() != found["0.weight"].data_ptr()
    assert found["0.bias"] is not found["1.bias"]
    assert torch.equal(found["row"], row)


@pytest.mark.parametrize("flipped_first", [False, True])
def test_views_that_differ_in_a_sign_are_copied_apart(flipped_first):
    """Conjugates, and their imaginary parts, have the address and the layout of the original."""
    numbers = torch.tensor([1.0 + 2.0j, 3.0 - 4.0j])
    state = [numbers, numbers.conj(), numbers.imag, numbers.conj().imag]
    assert state[2].data_ptr() == state[3].data_ptr()
    state = state[::-1] if flipped_first else state
    for before, now in zip(state, copied(state), strict=True):
        assert torch.equal(now, before)


def test_a_copy_of_parameters_records_no_gradients():
    found = copied(
        {"w": torch.nn.Parameter(torch.ones(2)), "sum": torch.ones(2).requires_grad_() + 1}
    )
    assert not any(tensor.requires_grad for tensor in found.values())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_a_sum_that_overflows_is_no_divergence(dtype):
    large = torch.full((64,), torch.finfo(dtype).max, dtype=dtype)
    before = {"w": torch.ones(64, dtype=dtype), "step": torch.tensor(1.0)}
    assert not have_diverged({**before, "w": large}, before)
    large[5] = torch.nan
    assert have_diverged({**before, "w": large}, before)


class Counting(TorchDispatchMode):
    """Counts the operations, and the numbers that they make."""

    def __init__(self):
        super().__init__()
        self.operations = self.numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        if not function.is_view:
            self.operations += 1
            self.numbers += made.numel() if isinstance(made, torch.Tensor) else 0
        return made


def test_a_look_at_a_state_reads_each_tensor_once_and_makes_none_of_its_size():
    state = {str(i): torch.ones(1000) for i in range(20)}
    with Counting() as counted:
        assert not have_diverged(state, state)
    assert counted.operations <= 20 + 30  # to look at the sums takes some, whatever their number
    assert counted.numbers < 1000
