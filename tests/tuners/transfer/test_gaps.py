"""The share of tasks by their gaps: these are in the target's own unit, so unlike tasks are left soon."""

import pytest
import torch

import botorch_costly as bc
from benchmarks.meta.synthetic.benchmark import Run, measure
from benchmarks.meta.synthetic.world import NONE
from botorch_costly import ByGaps
from botorch_costly.acquisition import LogBeta
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.models import TaskEnsemble
from botorch_costly.tuners.transfer.belief import TargetData
from botorch_costly.tuners.transfer.gaps import GapWeighting

POOL = torch.linspace(0, 1, 200, dtype=torch.float64).unsqueeze(-1)


def target(X):
    return torch.sin(6 * X.squeeze(-1))


def weighting(factor, shift=0.0, **options):
    """Return the share of two tasks that are the target, with values of another scale and level."""
    inputs = [POOL[::20] + 1e-3 * k for k in range(2)]
    values = [shift + factor * target(X) for X in inputs]
    return GapWeighting(TaskEnsemble(inputs, values).fit(), ByGaps(**options), POOL)


def shares(weights, evaluations=6, generator=None):
    """Return the share after each evaluation of points all over the domain."""
    points = POOL[torch.linspace(0, 199, evaluations).long()]
    found = []
    for count in range(1, evaluations + 1):
        weights.learn(TargetData(points[:count], target(points[:count])))
        found.append(weights.share)
    return found


@pytest.mark.parametrize("factor", [30.0, -30.0])
def test_tasks_of_a_much_larger_scale_lose_their_share_at_once(factor):
    """Their own scale is no unit of their distance: measured by it every gap would be about one."""
    alike, unlike = shares(weighting(1.0)), shares(weighting(factor))
    assert all(share <= 0.7 ** (k + 1) + 1e-12 for k, share in enumerate(alike))
    assert all(far < near for far, near in zip(unlike[1:], alike[1:], strict=True))
    assert unlike[-1] < 0.02 * alike[-1]


@pytest.mark.parametrize("apart", [1e-9, 1e-3, 1e-2])
def test_first_values_that_are_nearly_equal_decide_nothing_for_good(apart):
    """Their standard deviation is no unit: one task is the target, the other one is flat and wrong."""

    def hill(X):
        return -((X.squeeze(-1) - 0.3) ** 2)

    inputs = POOL[::20]
    flat = torch.full((len(inputs),), float(hill(torch.tensor([[0.05]]))), dtype=torch.float64)
    flat = flat + 1e-3 * torch.sin(40 * inputs.squeeze(-1))
    tasks = TaskEnsemble([inputs, inputs], [hill(inputs), flat]).fit()
    weights = GapWeighting(tasks, ByGaps(), POOL)
    points = torch.tensor([[0.05], [0.55 + apart], [0.3], [0.9], [0.7], [0.15]]).double()
    found = []
    for count in range(1, 7):
        weights.learn(TargetData(points[:count], hill(points[:count])))
        found.append(float(weights.weights[0]))
    assert min(found) > 0.002
    assert found[-1] > 4 * min(found) or found[-1] > 0.4  # the task that is the target comes back


def test_a_factor_of_the_deviation_may_have_a_schedule():
    fixed, scheduled = ByGaps(beta=2.0), ByGaps(beta=LogBeta(0.2, 2.0))
    assert [fixed.factor(t) for t in (1, 9)] == [2.0, 2.0]
    assert scheduled.factor(9) == pytest.approx((0.2 * torch.tensor(18.0).log().item()) ** 0.5)
    generator = torch.Generator().manual_seed(0)
    data = TargetData(POOL[::40], target(POOL[::40]))
    narrow, wide = (
        weighting(1.0, decay=0.0, beta=beta) for beta in (LogBeta(0.2, 2.0), LogBeta(5.0, 2.0))
    )
    bounds = [w.acquisition(w.learn(data), generator).at_pool() for w in (narrow, wide)]
    assert (bounds[1] - bounds[0] > -1e-9).all()
    assert (bounds[1] - bounds[0]).max() > 0.1


@pytest.mark.parametrize("beta", [-1.0, "wide", lambda t: -1.0])
def test_a_bad_factor_is_refused(beta):
    with pytest.raises(InvalidArgumentError, match="beta"):
        ByGaps(beta=beta)


def test_functions_are_summed_only_if_any_are_sampled():
    assert ByGaps(thompson=True, summed=True).summed
    with pytest.raises(InvalidArgumentError, match="summed"):
        ByGaps(summed=True)
    with pytest.raises(InvalidArgumentError, match="summed"):
        ByGaps(thompson=True, summed=True, own_units=True)


def test_states_from_before_functions_were_summed_are_continued():
    space = bc.SearchSpace({"x": bc.Real(0.0, 1.0)})
    tasks = [bc.Task([{"x": k / 5} for k in range(6)], [-abs(k / 5 - 0.4) for k in range(6)])]
    make = lambda: bc.TransferOptimizer(space, tasks, robust=ByGaps(), seed=0)  # noqa: E731
    ours, other = make(), make()
    for _ in range(3):
        decision = ours.ask()
        ours.tell(decision, -abs(decision.config["x"] - 0.4))
    state = ours.state_dict()
    assert state["header"].pop("robust.summed") == "False"
    other.load_state_dict(state)
    assert other.ask().config == ours.ask().config


@pytest.mark.slow
def test_where_no_task_is_alike_regret_is_not_much_larger():
    """By a quarter on 40 seeds; a unit with a floor by the tasks' scales doubles it."""
    sums = {
        name: sum(measure(Run(NONE, name, seed))["sum"] for seed in range(12))
        for name in ("GP-UCB", "RM-GP-UCB")
    }
    assert sums["RM-GP-UCB"] <= 1.6 * sums["GP-UCB"]
