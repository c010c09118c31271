"""One value that is no measurement of the function may not decide what is learnt from all others.

The kind: any value, missing, far too low or huge, at any time in the target's history or in an earlier
study, sets the units or the scale of all that is learnt.
"""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.optim.smooth import by_autograd
from botorch_costly.tuners.transfer import choice
from botorch_costly.tuners.transfer.belief import Plausible, target_data_of
from botorch_costly.tuners.transfer.fears import Fears, fears_of
from botorch_costly.tuners.transfer.weighting import Acquisition
from tests.cases import quick, slow
from tests.oracles.transfer import fear

SPACE = bc.SearchSpace({"x": bc.Real(0.0, 1.0), "y": bc.Real(0.0, 1.0)})
FIRST = {"first": {0}, "third": {2}, "first three": {0, 1, 2}}


def value(config, at=0.4):
    return -((config["x"] - at) ** 2) - (config["y"] - 0.6) ** 2


def study(at, seed, n=15, changed=()):
    points = SPACE.sample(n, torch.Generator().manual_seed(seed))
    configs = [SPACE.decode(point) for point in points]
    values = [value(config, at) for config in configs]
    for number, other in changed:
        values[number] = other
    return bc.Task(configs, values)


STUDIES = [study(0.35, 0), study(0.4, 1), study(0.45, 2)]


def regret(tasks, bad=None, when=(), evaluations=7, **options):
    optimizer = bc.TransferOptimizer(SPACE, tasks, **options)
    best = math.inf
    for number in range(evaluations):
        asked = optimizer.ask()
        if number in when:
            optimizer.tell(asked, bad)
        else:
            best = min(best, -value(asked.config))
            optimizer.tell(asked, value(asked.config))
    return best


@pytest.mark.parametrize(
    ("bad", "when"),
    [slow((math.nan, "first")), (-10.0, "first"), (-1e6, "first three"), (math.inf, "third")],
)
def test_evaluations_that_go_astray_do_not_ruin_the_search(bad, when):
    # Random points: .02.
    assert regret(STUDIES, bad, FIRST[when]) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("bad", [math.nan, math.inf, -10.0, -1e3, -1e300])
@pytest.mark.parametrize("when", FIRST)
def test_no_evaluation_that_goes_astray_ruins_the_search(bad, when):
    assert regret(STUDIES, bad, FIRST[when]) < 0.01


FEW = [study(0.3, 0, n=9)]
LOW = {  # plausible values, though the tasks foretell others, and several failures; evaluations
    "low": (STUDIES, (-0.5,), 12),
    "lower": (STUDIES, (-1.0,), 12),
    "two low": (STUDIES, (-0.5, -0.5), 12),
    "failed, then low": (FEW, (math.nan, -0.5), 12),
    # The first configuration is the best of the only study: what is wrong there takes longer to outweigh.
    "low after few": (FEW, (-0.5,), 16),
    "lower after few": (FEW, (-1.0,), 12),
    "lowest after few": (FEW, (-2.0,), 12),
    "failed after few": (FEW, (math.nan,) * 3, 12),
}


@pytest.mark.parametrize("case", quick(LOW, "low", "failed after few"))
def test_low_values_that_are_plausible_do_not_ruin_the_search(case):
    # Random points: .018 after twelve evaluations, .013 after sixteen.
    tasks, low, evaluations = LOW[case]
    told = iter(low)
    optimizer, best = bc.TransferOptimizer(SPACE, tasks), math.inf
    for _ in range(evaluations):
        asked = optimizer.ask()
        true = value(asked.config)
        said = next(told, true)
        best = min(best, -true) if said == true else best
        optimizer.tell(asked, said)
    assert best < 0.01


def test_a_value_that_went_astray_counts_as_a_failure_where_it_was():
    optimizer = bc.TransferOptimizer(SPACE, STUDIES)
    asked = optimizer.ask()
    optimizer.tell(asked, -1.0)
    for _ in range(3):
        other = optimizer.ask()
        optimizer.tell(other, value(other.config))
    told = optimizer._strategy.weighting.learn(optimizer._strategy._data(optimizer._seen)).data
    torch.testing.assert_close(told.failures, SPACE.encode(asked.config).unsqueeze(0))
    assert len(told.values) == 3


@pytest.mark.slow
def test_a_low_value_that_others_confirm_is_believed():
    # The tasks lead to where the target is worst.
    far = [study(0.9, seed) for seed in range(3)]
    assert regret(far, evaluations=12) < 0.02


@pytest.mark.parametrize("robust", [bc.ByGaps(), bc.ByGaps(own_units=True)])
def test_neither_do_they_by_gaps(robust):
    assert regret(STUDIES, -1e3, {0}, robust=robust) < 0.02


def test_a_region_where_all_fails_is_left():
    optimizer = bc.TransferOptimizer(SPACE, STUDIES)
    best = math.inf
    for _ in range(14):
        asked = optimizer.ask()
        fails = math.dist(asked.config.values(), (0.4, 0.6)) < 0.15
        optimizer.tell(asked, math.nan if fails else value(asked.config))
        best = best if fails else min(best, -value(asked.config))
    assert best < 0.1


def test_a_target_in_other_units_than_the_tasks_is_learnt_from():
    optimizer = bc.TransferOptimizer(SPACE, STUDIES)
    for _ in range(5):
        asked = optimizer.ask()
        optimizer.tell(asked, value(asked.config) - 1000)
    assert sum(abs(weight) for weight in optimizer.weights) > 0
    assert optimizer.gaps is not None


LINE = bc.SearchSpace({"x": bc.Real(0.0, 1.0)})
ASTRAY = {  # what is told of an evaluation, by its number, where the value is v, and units of the target
    "several low": (lambda number, v: -1e6 if number < 4 else v, 1.0),
    "one low, other units": (lambda number, v: -1e9 if number == 0 else v, 1e6),
}


@pytest.mark.parametrize("case", quick(ASTRAY, "several low"))
def test_values_far_below_all_others_do_not_decide_the_search(case):
    said, unit = ASTRAY[case]
    xs = [k / 8 for k in range(9)]
    task = bc.Task([{"x": x} for x in xs], [-((x - 0.3) ** 2) for x in xs])
    optimizer, asked_at = bc.TransferOptimizer(LINE, [task]), []
    for number in range(14):
        asked = optimizer.ask()
        asked_at.append(asked.config["x"])
        optimizer.tell(asked, said(number, -unit * (asked.config["x"] - 0.4) ** 2))
    assert min(abs(x - 0.4) for x in asked_at) < 0.04  # random points: .05


OUTLIERS = {
    "one low": [(3, -1e3)],
    "one high": [(3, 1e3)],
    "both": [(3, -1e6), (7, 1e6)],
    "three": [(3, -1e3), (5, -1e6), (9, 1e300)],
}


@pytest.mark.parametrize("case", OUTLIERS)
def test_outliers_in_a_study_do_not_lose_it_and_are_named(case, caplog):
    points = SPACE.sample(40, torch.Generator().manual_seed(9))
    clean = bc.TransferOptimizer(SPACE, [study(0.4, 0)]).tasks.moments(points).mean[0]
    assert not caplog.records
    tasks = bc.TransferOptimizer(SPACE, [study(0.4, 0, changed=OUTLIERS[case])]).tasks
    ours = tasks.moments(points).mean[0]
    assert float(torch.corrcoef(torch.stack([clean, ours]))[0, 1]) > 0.9
    assert f"{len(OUTLIERS[case])} of 15" in caplog.text


def test_an_outlier_in_a_study_does_not_ruin_the_search():
    assert regret([study(0.4, 0, changed=[(3, -1e3)])], evaluations=6) < 0.01


@pytest.mark.parametrize("seed", quick(range(6), 0, 1))
def test_studies_of_any_size_in_any_units_are_no_error(seed):
    draws = torch.Generator().manual_seed(seed)

    def drawn(most):
        return int(torch.randint(most, (1,), generator=draws))

    tasks = []
    for _ in range(1 + drawn(4)):
        n = 1 + drawn(12)
        values = [
            float(torch.randn(1, generator=draws)) * (1, 1e-9, 1e9)[drawn(3)] for _ in range(n)
        ]
        tasks.append(bc.Task(torch.rand(n, 2, generator=draws).tolist(), values))
    optimizer = bc.TransferOptimizer(SPACE, tasks)
    for told in (1e12, 0.0, math.nan, -1e-9, 1e12):
        asked = optimizer.ask()
        assert all(math.isfinite(number) for number in asked.config.values())
        optimizer.tell(asked, told)


def test_a_run_goes_on_from_a_state_after_failures():
    optimizer = bc.TransferOptimizer(SPACE, STUDIES)
    for told in (math.nan, -0.1, -1e6):
        optimizer.tell(optimizer.ask(), told)
    again = bc.TransferOptimizer(SPACE, STUDIES)
    again.load_state_dict(optimizer.state_dict())
    for told in (-0.2, math.nan, -0.1):
        one, two = optimizer.ask(), again.ask()
        assert one == two
        optimizer.tell(one, told)
        again.tell(two, told)


def test_values_below_all_that_is_plausible_are_believed_when_there_are_several():
    # Negated studies of choices: the first four evaluations are where the target is worst.
    levels = {"a": -0.4, "b": 0.0, "c": -0.8}
    space = bc.SearchSpace(
        {"k": bc.Choice(list(levels)), "x": bc.Real(0.0, 1.0), "m": bc.Integer(1, 8)}
    )

    def said(config):
        away = 4 * config["x"] - 1.5
        return levels[config["k"]] - 0.3 * away**2 - 0.02 * (config["m"] - 5) ** 2

    tasks = []
    for seed in range(3):
        points = space.sample(30, torch.Generator().manual_seed(seed))
        configs = [space.decode(point) for point in points]
        tasks.append(bc.Task(configs, [-said(config) for config in configs]))
    optimizer = bc.TransferOptimizer(space, tasks)
    for _ in range(10):
        asked = optimizer.ask()
        optimizer.tell(asked, said(asked.config))
    assert said(optimizer.best()) > -0.1  # random points: -.2


LIKELY = Plausible(-10.0, 10.0, 1.0)
HIGH = {  # values, and what they count as
    "alone": ([1e6], [1.0]),
    "among few": ([0.5, 1e6, -0.5], [0.5, 0.5, -0.5]),
    "among many": ([0.1, 0.2, 0.4, 0.3, 9.0], [0.1, 0.2, 0.4, 0.3, 0.4]),
    "plausible": ([0.5, 9.0, -0.5], [0.5, 9.0, -0.5]),
    "other units": ([1e3, 1.1e3, 0.9e3, 1.2e3], [1e3, 1.1e3, 0.9e3, 1.2e3]),
    "as a failure": ([math.nan, 1e6, -0.5], [-0.5, -0.5]),
}


@pytest.mark.parametrize("case", HIGH)
def test_a_value_far_above_all_others_counts_as_the_best_of_these(case):
    values, expected = (torch.tensor(part, dtype=torch.float64) for part in HIGH[case])
    points = torch.arange(float(len(values))).unsqueeze(-1)
    data = target_data_of(points, values, LIKELY)
    torch.testing.assert_close(data.values, expected)
    assert len(data.failures) == int(values.isnan().sum())


@pytest.mark.parametrize(
    ("number", "robust"),
    [
        (0, bc.ByEvidence()),
        (3, bc.ByGaps()),
        slow((3, bc.ByEvidence())),
        slow((0, bc.ByGaps())),
    ],
)
def test_an_absurdly_high_value_does_not_ruin_the_search(number, robust):
    # Random points: .02 after seven evaluations.
    optimizer, best = bc.TransferOptimizer(SPACE, STUDIES, robust=robust), math.inf
    for k in range(9):
        if k == number:
            optimizer.tell(optimizer.enqueue({"x": 1.0, "y": 0.0}), 1e6)
        asked = optimizer.ask()
        best = min(best, -value(asked.config))
        optimizer.tell(asked, value(asked.config))
    assert best < 0.01


def test_fears_are_those_of_loops_and_of_one_failure_fade_beside_successes():
    draws = torch.Generator().manual_seed(2)
    failed, valid, X = (torch.rand(n, 2, generator=draws).double() for n in (3, 4, 5))
    sizes = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    ours = Fears(failed, sizes, valid)(X)[0]
    theirs = [fear(x, failed, sizes, valid, 0.1 * 2**0.5) for x in X]
    torch.testing.assert_close(ours, torch.tensor(theirs, dtype=torch.float64))
    alone, beside = (Fears(failed, sizes, v)(failed)[0] for v in (valid[:0], failed.repeat(3, 1)))
    assert bool((alone > 3 * beside).all())


@pytest.mark.parametrize("robust", [bc.ByEvidence(), bc.ByGaps(), bc.ByGaps(thompson=True)])
def test_pending_evaluations_say_nothing_about_failures(monkeypatch, robust):
    fears = []

    def spied(*arguments):
        fears.append(fears_of(*arguments))
        return fears[-1]

    monkeypatch.setattr(choice, "fears_of", spied)
    for near in ([], [0.41, 0.42]):
        optimizer = bc.TransferOptimizer(SPACE, STUDIES, robust=robust)
        for x, reward in ((0.1, -0.4), (0.4, math.nan)):
            optimizer.tell(optimizer.enqueue({"x": x, "y": 0.6}), reward)
        for x in near:
            optimizer.enqueue({"x": x, "y": 0.6})
        optimizer.ask()
    X = SPACE.sample(5, torch.Generator().manual_seed(4)).double()
    X[0] = torch.tensor([0.4, 0.6])
    alone, beside = (one(X)[0] for one in fears)
    assert len(fears) == 2
    torch.testing.assert_close(beside, alone)


def test_what_is_feared_has_the_slopes_it_says():
    points = SPACE.sample(3, torch.Generator().manual_seed(1)).double()
    at = torch.rand(4, 2, dtype=torch.float64)
    valid = torch.rand(2, 2, dtype=torch.float64)
    fears = Fears(points, torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64), valid)

    def hill(X):
        return 1 - (X - 0.3).square().sum(-1)

    hoped = Acquisition(
        hill, lambda _: by_autograd(hill), lambda: hill(at), lambda X, _: hill(X), ""
    )
    feared = fears.feared(hoped, at)
    asked = at.clone().requires_grad_()
    value = feared.at(asked)
    (expected,) = torch.autograd.grad(value.sum(), asked)
    torch.testing.assert_close(value, hill(asked) - fears(asked)[0])
    torch.testing.assert_close(feared.at_pool(), value.detach())
    torch.testing.assert_close(feared.climber(4)(at), (value.detach(), expected))
