"""Earlier studies of a search over trainings."""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, InvalidConfigError, StateMismatchError
from botorch_costly.numerics.robust import normal_scores
from botorch_costly.tuners.earlier.studies import EarlierStudies
from tests.cases import quick
from tests.tuners.curves.playing import LENGTH, SPACE, made, play, reward

TKWARGS = {"dtype": torch.float64, "device": torch.device("cpu")}
OF_STUDIES, AT_RANDOM = "of the portfolio of the earlier studies' best", "a first look, at random"


def configs_of(number, seed):
    points = SPACE.sample(number, torch.Generator().manual_seed(seed))
    return [SPACE.decode(point) for point in points]


def study(number=40, seed=0, sign=1.0, moved=0.0):
    """Final values of trainings of which the best rate is moved by some decades."""
    configs = configs_of(number, seed)
    ends = [reward({**c, "lr": c["lr"] * 10**-moved}, LENGTH) for c in configs]
    return bc.Task(configs, [sign * end for end in ends], name=f"study {seed}")


def earlier(*tasks, sign=1.0, **tkwargs):
    return EarlierStudies(SPACE, tasks, sign, fill=None, tkwargs={**TKWARGS, **tkwargs})


def test_without_studies_nothing_is_said():
    none, X = earlier(), torch.rand(5, SPACE.dim, dtype=torch.float64)
    assert none.means(X).shape == (5, 0)
    assert len(none.portfolio(None)) == 0
    assert len(none.portfolio(X)) == 0


def test_studies_are_predicted_in_normal_scores():
    task = study(60)
    values = torch.tensor(task.values, dtype=torch.float64)
    points = torch.stack([SPACE.encode(config) for config in task.configs])
    means = earlier(task).means(points).squeeze(-1)
    scores = normal_scores(values)
    assert float(torch.corrcoef(torch.stack([means, scores]))[0, 1]) > 0.98
    assert float((means - scores).abs().max()) < 0.7


@pytest.mark.parametrize("change", [math.exp, lambda v: 1e200 * v, lambda v: v**3 - 7])
def test_only_the_order_of_their_values_counts(change):
    task = study()
    other = bc.Task(task.configs, [change(value) for value in task.values])
    X = torch.rand(5, SPACE.dim, dtype=torch.float64)
    assert torch.equal(earlier(task).means(X), earlier(other).means(X))


def test_the_portfolio_is_good_on_the_studies():
    tasks = study(seed=0), study(seed=1, moved=0.5)
    for listed in (None, torch.stack([SPACE.encode(c) for c in configs_of(50, 5)])):
        points = earlier(*tasks).portfolio(listed)
        assert len(points) == 3
        assert len(torch.unique(points, dim=0)) == 3
        ends = [reward(SPACE.decode(point), LENGTH) for point in points]
        assert max(ends) > -0.5
        if listed is not None:
            assert all((listed == point).all(-1).any() for point in points)


def test_a_search_begins_with_the_portfolio_and_is_better():
    ours, theirs = made(tasks=[study()]), made()
    asked = play(ours, 12)
    play(theirs, 12)
    assert [a.reason for a in asked[:2]] == [OF_STUDIES, AT_RANDOM]
    best, other = (reward(o.best(), LENGTH) for o in (ours, theirs))
    assert best >= other - 0.05
    assert best > -0.3


@pytest.mark.parametrize("seed", quick([0, 1, 2], 0))
def test_studies_that_mislead_do_little_harm(seed):
    paid = []
    for tasks in ([study(sign=-1.0)], []):
        optimizer = made(seed, tasks=tasks)
        while reward(optimizer.best() or {"lr": 1e-4, "width": 1}, LENGTH) < -0.3:
            play(optimizer, 1)
        paid.append(optimizer.total_cost)
    assert paid[0] < 2 * paid[1] + 10 * LENGTH


def test_smaller_may_be_better():
    task = study()
    losses = bc.Task(task.configs, [-value for value in task.values])
    ours, theirs = made(tasks=[losses], maximize=False), made(tasks=[task])
    assert play(ours, 8, change=lambda value: -value) == play(theirs, 8)


def test_a_state_belongs_to_its_studies(tmp_path):
    optimizer, same, other = (
        made(tasks=tasks) for tasks in ([study()], [study()], [study(seed=3)])
    )
    play(optimizer, 9)
    bc.save(tmp_path / "search.pt", search=optimizer)
    bc.load(tmp_path / "search.pt", search=same)
    assert same.ask() == optimizer.ask()
    with pytest.raises(StateMismatchError, match="tasks"):
        bc.load(tmp_path / "search.pt", search=other)


@pytest.mark.parametrize("tasks", [study(), [1], "ab", None])
def test_what_is_no_list_of_tasks_is_refused(tasks):
    with pytest.raises(InvalidArgumentError, match="tasks: Expected a list of Task"):
        made(tasks=tasks)


def test_a_study_of_another_space_is_refused():
    with pytest.raises(InvalidConfigError):
        made(tasks=[bc.Task([{"depth": 3}], [0.5])])


def test_parameters_that_a_study_lacks_are_filled():
    rates = bc.Task([{"lr": 10.0 ** (-k / 4)} for k in range(4, 17)], list(range(13)))
    narrow, wide = (made(tasks=[rates], fill={"width": width}).ask() for width in (1, 8))
    assert (narrow.config["width"], wide.config["width"]) == (1, 8)


def test_studies_do_not_go_with_a_compression():
    with pytest.raises(InvalidArgumentError, match="tasks: Expected none beside a compression"):
        made(tasks=[study()], compression=bc.Compression())


@pytest.mark.parametrize("values", [[0.5], [0.5] * 9, [0.5, None, math.nan, 0.7]])
def test_small_equal_and_failed_studies_are_read(values):
    configs = configs_of(len(values), 0)
    asked = play(made(tasks=[bc.Task(configs, values)]), 6)
    assert len(asked) == 6


def test_single_precision_begins_alike():
    single = made(tasks=[study()], dtype=torch.float32)
    play(single, 6)
    assert single.ask().config


def test_the_portfolio_of_studies_on_one_grid_is_of_different_configurations():
    configs = [{"lr": 10.0 ** (-4 + k / 2), "width": w} for k in range(7) for w in (1, 3, 5, 7)]
    ends = [reward(config, LENGTH) for config in configs]
    tasks = [bc.Task(configs, [end + k for end in ends]) for k in range(4)]
    points = earlier(*tasks).portfolio(None)
    assert len(points) == 3
    assert float(torch.pdist(points, p=torch.inf).min()) >= 0.05


def opening(optimizer, value_of):
    """The reasons of six first segments, with one value for the portfolio and one for the others."""
    reasons = []
    for _ in range(6):
        segment = optimizer.ask()
        reasons.append(segment.reason)
        optimizer.tell(segment, [value_of(segment.reason)] * segment.iterations, cost=1.0)
    return reasons


@pytest.mark.parametrize("value", [0.5, 0.7])
def test_a_portfolio_that_is_not_worse_takes_turns_with_random_configurations(value):
    reasons = opening(made(tasks=[study()]), lambda r: value if r == OF_STUDIES else 0.5)
    assert reasons == 3 * [OF_STUDIES, AT_RANDOM]


@pytest.mark.parametrize("value", [0.4, math.nan])
def test_a_portfolio_that_is_worse_or_diverges_ends(value):
    reasons = opening(made(tasks=[study()]), lambda r: value if r == OF_STUDIES else 0.5)
    assert reasons[:4] == [OF_STUDIES, *3 * [AT_RANDOM]]
    assert not {OF_STUDIES, AT_RANDOM} & set(reasons[4:])


def test_a_portfolio_goes_on_while_random_configurations_diverge():
    reasons = opening(made(tasks=[study()]), lambda r: 0.1 if r == OF_STUDIES else math.nan)
    assert reasons == 3 * [OF_STUDIES, AT_RANDOM]


def test_pending_segments_take_turns():
    optimizer = made(tasks=[study()])
    assert [optimizer.ask().reason for _ in range(6)] == 3 * [OF_STUDIES, AT_RANDOM]


def test_what_the_portfolio_gains_later_does_not_lengthen_the_opening():
    optimizer = made(tasks=[study()])
    opening(optimizer, lambda r: 0.4 if r == OF_STUDIES else 0.5)
    first = optimizer.trainings[0]
    segment = optimizer.enqueue(first.config, training=first.number)
    optimizer.tell(segment, [0.9] * segment.iterations, cost=1.0)
    assert optimizer.ask().reason not in (OF_STUDIES, AT_RANDOM)


@pytest.mark.parametrize("progress", [None, "half"])
def test_failed_observations_count_as_the_lowest(progress):
    """What diverged before is avoided: the value rises towards a cliff."""
    configs = configs_of(60, 4)
    rises = [math.log10(config["lr"]) for config in configs]
    values = [None if rise > -2 else rise for rise in rises]
    shares = None if progress is None else [0.5] * len(configs)
    points = earlier(bc.Task(configs, values, progress=shares)).portfolio(None)
    assert all(math.log10(SPACE.decode(point)["lr"]) < -1.8 for point in points)


def test_a_search_begins_with_the_first_proposal():
    (config,) = configs_of(1, seed=9)
    advice = bc.Task.advice([config])
    listed = SPACE.sample(40, torch.Generator().manual_seed(1))
    whole = earlier(study(), advice).portfolio(None)
    of_list = earlier(study(), advice, sign=-1.0).portfolio(listed)
    proposal = SPACE.encode(config)
    assert torch.equal(whole[0], proposal)
    assert torch.equal(of_list[0], listed[(listed - proposal).norm(dim=-1).argmin()])
    assert len(whole) == len(of_list) == 3


def test_of_advice_alone_only_the_first_proposal_begins_a_search():
    configs = configs_of(3, seed=9)
    points = earlier(bc.Task.advice(configs), bc.Task.advice(configs[1:])).portfolio(None)
    assert torch.equal(points, SPACE.encode(configs[0]).unsqueeze(0))
    assert len(earlier(bc.Task.advice([{"lr": 0.01}])).portfolio(None)) == 0
