"""A search on parts of the data after earlier studies."""

import copy
import dataclasses
import math
import pickle

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import (
    InvalidArgumentError,
    InvalidConfigError,
    InvalidSpaceError,
    StateMismatchError,
)
from botorch_costly.tuners.earlier import EarlierStudies
from botorch_costly.tuners.subsets.belief import log_shares
from tests.cases import quick, slow

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1.0, log=True), "width": bc.Integer(1, 9)})
SHARE = bc.SearchSpace({"fraction": bc.Real(1 / 64, 1.0, log=True)})
QUICK = bc.Sampling(draws=3, first_steps=20, steps=8, points=10, candidates=40, first=4)
FEWER = dataclasses.replace(QUICK, draws=2, first_steps=8, points=5, candidates=20)


def loss(config, share=1.0, moved=0.0):
    """The best rate is 0.01 on all of the data, and larger on parts of it."""
    rate = math.log10(config["lr"]) + 2 - moved + 0.5 * math.log10(share)
    return rate**2 + 0.03 * (config["width"] - 6) ** 2 + 0.3 * (share**-0.3 - 1)


def configs_of(number, seed):
    points = SPACE.sample(number, torch.Generator().manual_seed(seed))
    return [SPACE.decode(point) for point in points]


def study(number=30, seed=0, moved=0.0, share=None):
    configs = configs_of(number, seed)
    values = [loss(c, share or 1.0, moved) for c in configs]
    shared = {} if share is None else {"fraction": share}
    return bc.Task([{**config, **shared} for config in configs], values)


def made(tasks=(), seed=0, **options):
    options = {"maximize": False, "sampling": QUICK, **options}
    return bc.SubsetOptimizer(SPACE, SHARE, tasks=tasks, seed=seed, **options)


def play(optimizer, evaluations):
    asked = []
    for _ in range(evaluations):
        ask = optimizer.ask()
        share = ask.fidelities["fraction"]
        optimizer.tell(ask, loss(ask.config, share), cost=share)
        asked.append(ask)
    return asked


def test_a_search_begins_where_earlier_studies_were_good():
    asked = play(made([study(seed=0), study(seed=1, moved=0.4)]), 3)
    assert all(loss(ask.config) < 1.5 for ask in asked)
    assert max(ask.fidelities["fraction"] for ask in asked) < 1


def test_what_good_studies_say_is_believed():
    """Ranks of the means at the target, after six cheap evaluations, over two searches."""
    configs = configs_of(40, 9)
    truth = torch.tensor([-loss(config) for config in configs])

    def agreement(tasks, seed):
        optimizer = made(tasks, seed, sampling=FEWER)
        play(optimizer, 6)
        means = -optimizer.predict(configs)[0]
        ranks = torch.stack([means.argsort().argsort(), truth.argsort().argsort()]).double()
        return float(torch.corrcoef(ranks)[0, 1])

    with_studies = [agreement([study(seed=seed), study(seed=seed + 9)], seed) for seed in range(2)]
    alone = [agreement((), seed) for seed in range(2)]
    assert sum(with_studies) > sum(alone)
    assert sum(with_studies) > 1.0


@pytest.mark.slow
def test_a_study_that_says_the_opposite_is_read_so():
    tasks = [bc.Task(study().configs, [-value for value in study().values])]
    optimizer = made(tasks)
    play(optimizer, 12)
    best, worst = {"lr": 0.01, "width": 6}, {"lr": 1.0, "width": 1}
    means, _ = optimizer.predict([best, worst])
    assert float(means[0]) < float(means[1])


def test_fidelities_of_a_study_are_read_at_the_target():
    """On parts of the data larger rates are better: two shares say where the whole has its optimum."""
    parts = [study(40, share=share) for share in (0.05, 0.3)]
    configs = [config for task in parts for config in task.configs]
    values = [value for task in parts for value in task.values]
    whole = study(40, seed=3)
    task = bc.Task([*configs, *whole.configs], [*values, *whole.values])
    tkwargs = {"dtype": torch.float64, "device": torch.device("cpu")}
    earlier = EarlierStudies(SPACE, [task], -1.0, fill=None, tkwargs=tkwargs, fidelities=SHARE)
    rates = torch.linspace(0, 1, 41, dtype=torch.float64)
    width = SPACE.encode({"lr": 0.01, "width": 6})[1:].expand(41, -1)
    means = earlier.means(torch.cat([rates.unsqueeze(-1), width], -1)).squeeze(-1)
    assert abs(float(rates[means.argmax()]) - 0.5) < 0.08  # 0.5 is a rate of 0.01


def cost_of(config, share):
    return (0.5 + config["width"] / 9) * share**1.5


def costly(number=40, seed=0, unit=60.0, stopped=False):
    """A study that tells its costs, in another unit, perhaps of trainings that were stopped early."""
    configs = [{**c, "fraction": 2.0 ** -(k % 6)} for k, c in enumerate(configs_of(number, seed))]
    progress = [0.25 if stopped and k % 2 else 1.0 for k in range(number)]
    costs = [unit * cost_of(c, c["fraction"]) * p for c, p in zip(configs, progress, strict=True)]
    costs[3] = None
    values = [loss(config, config["fraction"]) for config in configs]
    return bc.Task(configs, values, costs=costs, progress=progress)


@pytest.mark.parametrize("stopped", [False, True])
def test_costs_of_studies_are_expected_of_a_search(stopped):
    tasks = [costly(), costly(seed=1, unit=1e-3, stopped=stopped), study()]
    options = {"dtype": torch.float64, "device": "cpu"}
    earlier = EarlierStudies(SPACE, tasks, -1.0, fill=None, tkwargs=options, fidelities=SHARE)
    configs, shares = configs_of(30, 7), [2.0 ** -(k % 6) for k in range(30)]
    points = torch.stack([SPACE.encode(config) for config in configs])
    at = torch.stack([SHARE.encode({"fraction": share}) for share in shares])
    expected = earlier.expected_cost(log_shares(SHARE))(torch.cat([points, at], -1)).squeeze(-1)
    truth = torch.tensor([cost_of(c, s) for c, s in zip(configs, shares, strict=True)])
    ratio = (expected / truth).log()
    assert float(ratio.std()) < 0.15


def test_few_costs_expect_nothing():
    task = costly(number=4)  # one of which is unknown
    two = bc.Task(task.configs[1:], task.values[1:], costs=task.costs[1:])
    options = {"dtype": torch.float64, "device": "cpu"}
    for tasks in ([two], [study()], []):
        earlier = EarlierStudies(SPACE, tasks, -1.0, fill=None, tkwargs=options, fidelities=SHARE)
        assert earlier.expected_cost(log_shares(SHARE)) is None


@pytest.mark.slow
def test_a_search_after_studies_with_costs_goes_on_as_if_never_stopped():
    ours, theirs = made([costly()]), made([costly()])
    play(ours, 6)
    state = copy.deepcopy(ours.state_dict())
    theirs.load_state_dict(state)
    assert play(ours, 2) == play(theirs, 2)
    task = costly()
    other = bc.Task(task.configs, task.values, costs=task.costs[::-1])
    with pytest.raises(StateMismatchError, match="costs"):
        made([other]).load_state_dict(state)
    state["header"].pop("costs")  # an earlier version knew none
    made([other]).load_state_dict(state)


@pytest.mark.parametrize("power", quick([1e308, 5e-324, 1e-150], 1e308))
def test_absurd_costs_are_no_failure(power):
    task = costly()
    ratio = [1.0 + k % 7 for k in range(len(task))]
    costs = [min(power * r, 1e308) for r in ratio]
    steep = [10.0 ** (5 * k - 100) for k in range(len(task))]
    for absurd in (costs, steep):
        progress = [0.1] * len(task)
        told = bc.Task(task.configs, task.values, costs=absurd, progress=progress)
        assert play(made([told], sampling=FEWER), 6)[-1].config["lr"] > 0


def test_a_training_that_failed_early_counts_with_the_cost_of_a_whole_one():
    configs = configs_of(8, 0)  # on all of the data
    values = [math.nan if k % 2 else loss(c) for k, c in enumerate(configs)]
    progress = [0.1 if k % 2 else 1.0 for k in range(8)]
    task = bc.Task(configs, values, costs=[10.0 * p for p in progress], progress=progress)
    options = {"dtype": torch.float64, "device": "cpu"}
    earlier = EarlierStudies(SPACE, [task], -1.0, fill=None, tkwargs=options, fidelities=SHARE)
    at = torch.stack([torch.cat([SPACE.encode(c), torch.ones(1).double()]) for c in configs])
    expected = earlier.expected_cost(log_shares(SHARE))(at)
    torch.testing.assert_close(expected, expected[:1].expand_as(expected), rtol=0.02, atol=0)


@pytest.mark.parametrize(
    "read", [lambda search: search.best(), slow(lambda search: search.summary())]
)
def test_a_search_that_has_predicted_is_pickled(read):
    ours = made([costly()], sampling=FEWER)
    play(ours, 5)
    read(ours)
    theirs = pickle.loads(pickle.dumps(ours))
    assert play(ours, 1) == play(theirs, 1)


def test_no_studies_are_no_other_search():
    ours, theirs = (
        made((), sampling=FEWER),
        bc.SubsetOptimizer(SPACE, SHARE, maximize=False, sampling=FEWER),
    )
    assert play(ours, 6) == play(theirs, 6)


def test_a_state_goes_on_as_if_never_stopped():
    tasks = [study()]
    ours = made(tasks, sampling=FEWER)
    play(ours, 5)
    theirs = made(tasks, sampling=FEWER)
    theirs.load_state_dict(copy.deepcopy(ours.state_dict()))
    assert play(ours, 2) == play(theirs, 2)
    with pytest.raises(StateMismatchError, match="tasks"):
        made([study(seed=5)], sampling=FEWER).load_state_dict(ours.state_dict())


def test_a_state_from_before_there_were_studies_loads():
    ours = made()
    play(ours, 2)
    state = ours.state_dict()
    state["header"].pop("tasks")
    theirs = made()
    theirs.load_state_dict(state)
    assert play(ours, 1) == play(theirs, 1)
    with pytest.raises(StateMismatchError, match="tasks"):
        made([study()]).load_state_dict(state)


def test_curves_are_read_at_their_ends():
    """Trainings that were stopped: their early values have the order of their ends."""
    configs = configs_of(30, 2)
    rows = [(c, loss(c) + 1 / s, s) for c in configs for s in (0.25, 0.5)]
    points, values, shares = zip(*rows, strict=True)
    asked = play(made([bc.Task(points, values, progress=shares)]), 3)
    assert all(loss(ask.config) < 1.5 for ask in asked)


def test_a_list_begins_with_the_portfolio_nearby():
    pairs = [(c, {"fraction": s}) for c in configs_of(12, 4) for s in (0.1, 1.0)]
    optimizer = made([study()], candidates=pairs)
    asked = play(optimizer, 6)
    assert loss(asked[0].config) <= sorted(loss(c) for c, _ in pairs)[6]
    assert len({str(ask.to_dict()) for ask in asked}) == 6


@pytest.mark.slow
def test_single_precision_predicts_the_same():
    ours, theirs = (made([study()], dtype=dtype) for dtype in (torch.float64, torch.float32))
    configs = configs_of(20, 6)
    for optimizer in (ours, theirs):
        play(optimizer, 6)
    found, wanted = (optimizer.predict(configs)[0] for optimizer in (theirs, ours))
    assert bool(found.isfinite().all())
    assert float(torch.corrcoef(torch.stack([found.double(), wanted.double()]))[0, 1]) > 0.8


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InvalidArgumentError, match="tasks"):
        made(study())
    with pytest.raises(InvalidConfigError):
        made([bc.Task([{"momentum": 0.9}], [1.0])])
    with pytest.raises(InvalidSpaceError, match="lr"):
        bc.SubsetOptimizer(
            SPACE, bc.SearchSpace({"lr": bc.Real(0.1, 1.0)}), tasks=[study()], maximize=False
        )


def test_a_proposal_is_tried_first_on_a_small_part():
    proposed = {"lr": 0.012, "width": 5}
    ask = made([bc.Task.advice([proposed])]).ask()
    assert ask.config["lr"] == pytest.approx(0.012)
    assert ask.config["width"] == 5
    assert ask.fidelities["fraction"] == pytest.approx(1 / 64)
    asked = play(made([bc.Task.advice([{"lr": 0.012}]), study()]), 2)
    assert loss(asked[0].config) < 1.5  # a part of a proposal says where the study is to be read
