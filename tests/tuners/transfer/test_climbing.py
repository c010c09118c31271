"""What is climbed is the acquisition that is compared, and what is learnt of the target alone is kept."""

import copy

import pytest
import torch

from botorch_costly.models.task_fitting import Padded, posterior_of
from botorch_costly.tuners.transfer import choice
from botorch_costly.tuners.transfer.belief import OwnMemory, TargetData
from tests.cases import quick, slow
from tests.tuners.online.states import same
from tests.tuners.transfer.test_optimizer import ROBUST, SPACE, played, study


@pytest.mark.parametrize("robust", ROBUST)
@pytest.mark.parametrize("evaluations", quick([0, 1, 6], 0, 1))
def test_slopes_are_those_of_the_acquisition(robust, evaluations):
    optimizer = played(evaluations, [study(), study(0.8, seed=1)], robust=ROBUST[robust])
    told, generator = optimizer._strategy._data(optimizer._seen), torch.Generator().manual_seed(2)
    sharing = optimizer._strategy.weighting
    told = sharing.learn(told)
    X = torch.rand(4, 2, generator=generator, dtype=torch.float64)
    for _ in range(3):  # a function may be drawn of a task or of the target
        acquisition = sharing.acquisition(told, generator)
        asked = X.clone().requires_grad_()
        value = acquisition.at(asked)
        (slope,) = torch.autograd.grad(value.sum(), asked)
        ours = acquisition.climber(4)(X)
        torch.testing.assert_close(ours, (value.detach(), slope), atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize("robust", quick(ROBUST, "evidence", "gaps"))
def test_what_is_believed_of_evaluations_under_way_is_not_learnt(robust):
    optimizer = played(4, [study(), study(0.8, seed=1)], robust=ROBUST[robust])
    optimizer.ask()
    before = copy.deepcopy(optimizer._strategy.weighting.state_dict())
    optimizer.ask()
    assert same(optimizer._strategy.weighting.state_dict(), before)


def told(count):
    points = SPACE.sample(count, torch.Generator().manual_seed(5)).double()
    return TargetData(points, (9 * points[:, 0]).sin() + points[:, 1])


def density(target):
    model = target.model
    rows = Padded(model.inputs.double(), model.targets.double(), model.seen)
    return float(posterior_of(model.kernel, rows)(model.theta.double().unsqueeze(-2))[0])


def learnt_of(all_told, counts):
    memory = OwnMemory("matern52")
    return [memory.learn(TargetData(all_told.points[:n], all_told.values[:n])) for n in counts][-1]


@pytest.mark.parametrize(("counts", "lost"), [((4, 6, 11, 15), 0.05), slow(((7, 12, 17, 18), 0.5))])
def test_values_one_by_one_teach_as_much_as_all_at_once(counts, lost):
    # Searches begin from nothing at the first counts; between them, another maximum may be kept.
    values = told(18)
    for count in counts:
        whole = density(learnt_of(values, [count]))
        assert density(learnt_of(values, range(1, count + 1))) > whole - lost


def test_hyperparameters_that_are_stuck_are_left_when_values_have_grown():
    values = told(18)
    memory, bad = OwnMemory("matern52"), torch.tensor([[6.0, 6.0, 0.0, 0.0]], dtype=torch.float64)
    memory.load_state_dict({"theta": bad, "count": 12, "anew": 12})
    assert density(memory.learn(values)) > density(learnt_of(values, [18])) - 0.05


def test_a_memory_goes_on_from_its_state():
    values, memory = told(9), OwnMemory("matern52")
    memory.learn(TargetData(values.points[:7], values.values[:7]))
    again = OwnMemory("matern52")
    again.load_state_dict(memory.state_dict())
    one, other = (each.learn(values) for each in (memory, again))
    assert torch.equal(one.model.theta, other.model.theta)
    assert torch.equal(one.model.theta, again.learn(values).model.theta)  # nothing is new


def test_climbs_begin_apart_from_each_other_and_at_the_best():
    pool = torch.tensor([[0.5], [0.52], [0.1], [0.9], [0.48]], dtype=torch.float64)
    values = torch.tensor([5.0, 4.0, 1.0, 3.0, 2.0], dtype=torch.float64)
    starts = choice._apart(pool, values).flatten().tolist()
    assert starts == [0.5, 0.9, 0.1, 0.52, 0.48]
