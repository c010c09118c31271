"""What similar tasks weigh, and families of many tasks."""

import pytest
import torch

from benchmarks.harness.record import RESULTS
from benchmarks.meta import many, weights
from benchmarks.meta.families import FAMILIES
from benchmarks.meta.live import pool
from benchmarks.meta.live.cart_pole import BEGINNINGS, beginnings
from benchmarks.meta.methods import METHODS
from benchmarks.meta.rivals import Setting, Weighed
from benchmarks.meta.synthetic import benchmark as synthetic
from benchmarks.suite.data import MissingDataError
from botorch_costly.models import TaskEnsemble
from botorch_costly.tuners.transfer.belief import TargetData
from tests.cases import quick


def setting():
    """Four tasks of a line: the first two rise as the target does, the others fall."""
    points = torch.linspace(0, 1, 12, dtype=torch.float64).unsqueeze(-1)
    values = [sign * points[:, 0] + 0.1 * (5 * points[:, 0]).sin() for sign in (1, 1, -1, -1)]
    tasks = TaskEnsemble([points] * 4, values).fit()
    return Setting(tasks, points, torch.arange(12), torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", weights.WEIGHING)
def test_rules_that_weight_tasks_tell_which_rank_as_the_target_does(name):
    given = setting()
    policy = METHODS[name](given)
    assert isinstance(policy, Weighed)
    policy(TargetData(given.points[:0], given.points[:0, 0]))
    assert policy.weights.tolist() == pytest.approx([0.25] * 4)
    rows = [0, 11, 5, 8, 2, 10]
    policy(TargetData(given.points[rows], given.points[rows, 0]))
    assert float(policy.weights[:2].sum()) > 0.8 * float(policy.weights.sum())


def test_weights_are_told_of_each_choice():
    given, seen = setting(), []
    choose = weights.watched(given, "RM-GP-UCB", seen)
    for rows in ([], [0], [0, 11]):
        choose(TargetData(given.points[rows], given.points[rows, 0]))
    assert [len(one) for one in seen] == [4, 4, 4]
    assert seen[1].tolist() != seen[2].tolist()


def test_a_share_is_of_the_targets_of_which_some_task_has_a_weight():
    rows = [
        {"similar": [[0.2], [0.0]], "all": [[0.8], [0.0]]},  # the second target knows no task
        {"similar": [[0.1], [0.3]], "all": [[0.4], [0.4]]},
        {"similar": [[0.0], [0.0]], "all": [[0.0], [0.0]]},
    ]
    assert weights.shares(rows, 0) == pytest.approx([0.25, 0.5])


def test_the_table_tells_shares_and_where_no_task_has_a_weight(monkeypatch):
    monkeypatch.setattr(weights, "AT", (0, 1))
    near = {"problem": "cart-pole", "method": "TAF", "seed": 0, "similar": [[0.3, 0.0]]}
    stored = [
        {**near, "all": [[1.0, 0.0]]},
        {**near, "seed": 1, "similar": [[0.3, 0.6]], "all": [[1.0, 1.0]]},
    ]
    text = weights.text(stored)
    line = next(line for line in text.splitlines() if line.startswith("  TAF"))
    assert "3 similar tasks of 11; 1 target(s)" in text
    assert line.split()[1:] == ["2", "0.30", "±0.00", "0.60", "±0.00", "0.50"]


@pytest.mark.parametrize("problem", quick(weights.PROBLEMS, "cart-pole"))
def test_similar_tasks_are_others_than_the_target(problem):
    try:
        family, similar = weights.PROBLEMS[problem]()
    except MissingDataError as missing:
        pytest.skip(str(missing))
    assert set(similar) == set(family.targets)
    assert all(target not in near for target, near in similar.items())
    assert 0.1 < weights.PROBLEMS[problem]().even < 0.4
    counts = {len(near) for near in similar.values()} | {len(family.whole) - 1}
    assert {int(word) for word in weights._TITLES[problem].split() if word.isdigit()} == counts


def test_the_nearest_tasks_are_those_that_rank_alike(monkeypatch):
    monkeypatch.setattr(weights, "_NEAREST", 2)
    values = torch.tensor([[1.0, 2, 3, 4], [4, 3, 2, 1], [1, 2, 3, 5], [0, 1, 3, 2]])
    family = FAMILIES["cart-pole"]()
    whole = tuple(family.whole[0]._replace(values=some) for some in values)
    assert weights._nearest(family._replace(whole=whole), 0) == {2, 3}


def test_many_tasks_keep_the_shares_and_the_recorded_target():
    assert beginnings(1).keys() == BEGINNINGS.keys()
    states = beginnings(4)
    near = [name for name in states if name.startswith("similar")]
    assert (len(near), len(states) - 1) == (12, 44)
    assert torch.equal(states["target"], BEGINNINGS["target"])
    family, tasks = many.world(1, 0)
    assert tasks.count == 12
    known = pool.table("cart-pole", RESULTS)
    assert torch.equal(
        family.whole[0].values, known.values["target"][: len(family.whole[0].values)]
    )
    # The tasks begin where the recorded ones do, on episodes of other seeds: they rank alike.
    recorded = known.values["similar 1"][: len(family.whole[0].values)]
    places = (
        (family.whole[1].points.unsqueeze(1) == family.whole[0].points).all(-1).long().argmax(-1)
    )
    apart = (family.whole[1].values - recorded[places]).abs()
    assert float(apart.mean()) < 0.05


def test_a_run_after_many_tasks_tells_least_regrets(monkeypatch):
    monkeypatch.setattr(many, "AT", (1, 3))
    row = many.measure(many.Run(1, "RM-GP-UCB", 0))
    assert row["tasks"] == 11
    assert 0 <= row["at 3"] <= row["at 1"] <= 1
    line = next(line for line in many.text([row]).splitlines() if line.startswith("  RM-GP-UCB"))
    assert line.split()[1] == "1"


def test_lcbench_in_small_has_the_same_targets_on_all_networks():
    try:
        small, whole = FAMILIES["lcbench-small"](), FAMILIES["lcbench"]()
    except MissingDataError as missing:
        pytest.skip(str(missing))
    assert small.whole == whole.whole
    assert set(small.targets) < set(whole.targets)
    assert {len(one.values) for one in small.earlier(0)} == {100}


def test_both_goals_where_no_task_is_alike_are_told():
    cells = {synthetic.NONE: (6.0, 4.0), synthetic.NONE_AFTER: (4.4, 4.0)}
    stored = [
        {"cell": cell, "method": method, "seed": 0, "sum": total}
        for cell, sums in cells.items()
        for method, total in zip(("RM-GP-UCB", "GP-UCB"), sums, strict=True)
    ]
    told = [synthetic._worst(stored, cell) for cell in cells]
    assert told[0].endswith("6.0 of 4.0, 1.50 times on 1 seeds (missed).")
    assert told[1].endswith("4.4 of 4.0, 1.10 times on 1 seeds (met).")
    assert "not measured" in synthetic._worst([], synthetic.NONE)
