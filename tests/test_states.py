"""Copies of states share nothing, and what stopped being finite is found."""

from collections import Counter, OrderedDict

import pytest
import torch

from botorch_costly.states import copied, have_diverged


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
