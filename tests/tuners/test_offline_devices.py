"""The offline optimizers compute where and in what they are told to, and decide there as on the CPU.

With ``-p tests.far --device far`` the device is one that refuses tensors of the CPU.
"""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, StateMismatchError
from botorch_costly.optim import lbfgs
from botorch_costly.tuners.subsets.belief import Sampling
from tests.cases import quick

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "depth": bc.Integer(1, 8)})
TASK = bc.Task([{"lr": 10.0**-k, "depth": k} for k in (1, 2, 3, 4)], [0.1, 0.4, 0.3, 0.0])
QUICK = Sampling(draws=2, first_steps=8, steps=8, points=4, candidates=12, first=3)


def value(config):
    return -((math.log10(config["lr"]) + 2) ** 2) - 0.1 * config["depth"]


def tell_curve(optimizer, ask):
    at = range(ask.since + 1, ask.until + 1)
    optimizer.tell(ask, [value(ask.config) - 1 / k for k in at])


CASES = {
    "curves": (lambda **more: bc.CurveOptimizer(SPACE, 9, **more), tell_curve),
    "subsets": (
        lambda **more: bc.SubsetOptimizer(SPACE, sampling=QUICK, **more),
        lambda optimizer, ask: optimizer.tell(ask, value(ask.config)),
    ),
    "transfer": (
        lambda **more: bc.TransferOptimizer(SPACE, [TASK], **more),
        lambda optimizer, ask: optimizer.tell(ask, value(ask.config)),
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def run(case, rounds, **more):
    make, tell = case
    optimizer, asked = make(**more), []
    for _ in range(rounds):
        asked.append(optimizer.ask())
        tell(optimizer, asked[-1])
    return optimizer, asked


@pytest.mark.parametrize(
    "more", [{"dtype": torch.int64}, {"dtype": "float64"}, {"device": "abacus"}]
)
def test_a_wrong_dtype_or_device_is_named_at_the_door(case, more):
    with pytest.raises(InvalidArgumentError, match=f"^{next(iter(more))}: Expected"):
        case[0](**more)


@pytest.mark.parametrize("dtype", quick([torch.float64, torch.float32], torch.float32))
def test_a_device_decides_as_the_cpu_and_hands_its_state_over(case, dtype, tkwargs, monkeypatch):
    # A search looks less often elsewhere at what is left of it, since it would wait.
    monkeypatch.setattr(lbfgs, "is_near", lambda *_: True)
    _, here = run(case, 4, dtype=dtype)
    there, asked = run(case, 4, dtype=dtype, device=tkwargs["device"])
    assert asked == here
    moved = case[0](dtype=dtype)
    moved.load_state_dict(there.state_dict())
    assert moved.ask() == there.ask()


def test_a_state_of_the_cpu_goes_on_elsewhere(case, tkwargs, monkeypatch):
    monkeypatch.setattr(lbfgs, "is_near", lambda *_: True)
    here, _ = run(case, 6)  # the next fit begins from the hyperparameters of the last one
    there = case[0](device=tkwargs["device"])
    there.load_state_dict(here.state_dict())
    assert there.ask() == here.ask()


def test_a_state_knows_its_dtype_and_older_ones_were_in_double_precision(case):
    optimizer, _ = run(case, 2)
    state = optimizer.state_dict()
    with pytest.raises(StateMismatchError, match="option dtype"):
        case[0](dtype=torch.float32).load_state_dict(state)
    del state["header"]["dtype"]
    case[0]().load_state_dict(state)
