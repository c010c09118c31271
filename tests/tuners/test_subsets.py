"""Evaluations on parts of the data that tell of the optimum of the whole."""

import copy
import hashlib
import logging
import math
from functools import cache

import numpy
import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors
from botorch_costly.tuners.subsets.belief import SubsetBelief, TemperedData
from botorch_costly.tuners.subsets.choice import recommendable, supported
from tests.cases import quick

SPACE = bc.SearchSpace({"x": bc.Real(0.0, 1.0)})
QUICK = bc.Sampling(draws=4, first_steps=30, steps=8, points=12, candidates=60)
FAST = bc.Sampling(draws=2, first_steps=8, steps=8, points=5, candidates=20, first=3)


def loss(x, s):
    """On little data the optimum is 0.5, on all of it 0.3; a power of the share is added."""
    return (x - 0.3 + 0.2 * math.log(s) / math.log(512)) ** 2 + 0.1 * (s**-0.3 - 1)


def played(evaluations, **options):
    settings = {"maximize": False, "sampling": QUICK, **options}
    optimizer = bc.SubsetOptimizer(SPACE, **settings)
    for _ in range(evaluations):
        asked = optimizer.ask()
        share = asked.fidelities["fraction"]
        optimizer.tell(asked, loss(asked.config["x"], share), cost=share)
    return optimizer


@cache
def run_of_seven():
    """A run that tests copy to go on with."""
    return played(7, sampling=FAST)


each_seed = pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])


@each_seed
def test_it_finds_the_optimum_of_the_whole_for_a_part_of_its_price(seed):
    optimizer = played(14, seed=seed)
    assert abs(optimizer.best()["x"] - 0.3) < 0.1  # 0.2 is that of little data
    assert optimizer.total_cost < 3
    assert min(d.fidelities["fraction"] for d in optimizer.decisions) < 0.05


@pytest.mark.slow
def test_what_is_believed_is_in_the_unit_of_what_was_told():
    halves = bc.SearchSpace({"fraction": bc.Real(0.25, 1.0, log=True)})
    optimizer = played(14, fidelities=halves)
    xs = [0.2, 0.3, 0.5]
    found, std = optimizer.predict([{"x": x} for x in xs])
    assert bool((std > 0).all())
    for value, x in zip(found.tolist(), xs, strict=True):
        assert value == pytest.approx(loss(x, 1.0), abs=0.03)


def test_reading_changes_no_later_decision():
    ours = copy.deepcopy(run_of_seven())
    theirs = copy.deepcopy(ours)
    assert ours.best() == ours.incumbent
    assert "best: " in ours.summary()
    ours.predict([{"x": 0.5}])
    assert ours.ask() == theirs.ask()


def test_a_list_is_asked_for_as_it_was_given_and_each_once():
    space = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True)})
    sizes = bc.SearchSpace({"layers": bc.Real(1, 12), "tokens": bc.Real(1e6, 1e9, log=True)})
    pairs = [
        ({"lr": lr}, {"layers": n, "tokens": t})
        for lr in (3e-4, 1.1e-3, 7e-3)
        for n, t in ((1.0, 1e6), (6.0, 3.3e7), (12.0, 1e9))
    ]
    optimizer = bc.SubsetOptimizer(space, sizes, candidates=pairs, sampling=QUICK, seed=1)
    asked = []
    for _ in range(len(pairs)):
        decision = optimizer.ask()
        asked.append((dict(decision.config), dict(decision.fidelities)))
        optimizer.tell(decision, -abs(math.log10(decision.config["lr"]) + 3))
    assert sorted(map(str, asked)) == sorted(map(str, pairs))
    with pytest.raises(errors.HorizonExceededError, match="all that are listed"):
        optimizer.ask()
    assert optimizer.best() == {"lr": 1.1e-3}
    shares = [f["layers"] / 12 * f["tokens"] / 1e9 for _, f in asked]
    assert optimizer.total_cost == pytest.approx(sum(shares))  # no cost was told


def test_several_may_be_under_way_and_are_not_asked_for_twice():
    optimizer = copy.deepcopy(run_of_seven())
    batch = [optimizer.ask() for _ in range(3)]
    points = {(d.config["x"], d.fidelities["fraction"]) for d in batch}
    assert len(points) == 3
    assert optimizer.pending == tuple(batch)


def test_failures_count_as_the_worst_value(caplog):
    optimizer = bc.SubsetOptimizer(SPACE, maximize=False, sampling=FAST)
    for k in range(7):
        asked = optimizer.ask()
        bad = asked.config["x"] > 0.6
        value = math.nan if bad else loss(asked.config["x"], asked.fidelities["fraction"])
        with caplog.at_level(logging.WARNING):
            told = optimizer.tell(asked, value, cost=1.0)
        assert told.failed == bad
        assert k == told.round
    assert optimizer.best()["x"] < 0.6
    assert optimizer.failed_queries == sum(row["failed"] for row in optimizer.history)
    alone = bc.SubsetOptimizer(SPACE, sampling=FAST)
    alone.tell(alone.ask(), math.inf)
    assert alone.best() is None


def test_constant_values_and_costs_are_no_failure():
    optimizer = bc.SubsetOptimizer(SPACE, sampling=FAST)
    for _ in range(4):
        optimizer.tell(optimizer.ask(), 1.0, cost=2.0)
    assert optimizer.ask().fidelities["fraction"] > 0
    huge = bc.SubsetOptimizer(SPACE, sampling=FAST)
    for k in range(4):
        huge.tell(huge.ask(), 1e300 * (k % 3), cost=1e300)
    assert math.isfinite(huge.ask().config["x"])


@each_seed
def test_overhead_makes_cheap_evaluations_dearer(seed):
    def spent(**options):
        return sum(d.fidelities["fraction"] for d in played(9, seed=seed, **options).decisions[6:])

    assert spent(overhead=5.0) > spent()


def test_what_makes_no_sense_is_refused():
    made = bc.SubsetOptimizer
    with pytest.raises(errors.InvalidSpaceError, match="tune"):
        made(bc.SearchSpace({"arm": bc.Choice(["one"])}))
    with pytest.raises(errors.InvalidSpaceError, match="Real"):
        made(SPACE, bc.SearchSpace({"epochs": bc.Integer(1, 9)}))
    with pytest.raises(errors.InvalidArgumentError, match="at least one"):
        made(SPACE, candidates=[])
    half = ({"x": 0.5}, {"fraction": 0.5})
    with pytest.raises(errors.InvalidArgumentError, match=r"each candidate once.*1 in 2"):
        made(SPACE, candidates=[half, half])
    with pytest.raises(errors.InvalidArgumentError, match="number 1"):
        made(SPACE, candidates=[half, {"x": 0.5}])
    with pytest.raises(errors.InvalidSpaceError, match="above 0"):
        made(SPACE, bc.SearchSpace({"fraction": bc.Real(0.0, 1.0)}))
    with pytest.raises(errors.InvalidConfigError):
        made(SPACE, candidates=[({"x": 0.5}, {"fraction": 1.5})])
    with pytest.raises(errors.InvalidArgumentError, match="overhead"):
        made(SPACE, overhead=-1.0)
    for option in ({"draws": 0}, {"steps": 3}, {"points": 1}, {"candidates": 0}, {"first": 1}):
        with pytest.raises(errors.InvalidArgumentError, match=next(iter(option))):
            bc.Sampling(**option)
    optimizer = made(SPACE, sampling=QUICK)
    asked = optimizer.ask()
    for cost in (0.0, -1.0, math.nan, math.inf, "much"):
        with pytest.raises(errors.InvalidArgumentError, match="cost"):
            optimizer.tell(asked, 0.5, cost=cost)
    assert optimizer.predict([{"x": 0.5}]) is None
    assert optimizer.incumbent is None
    optimizer.tell(asked, 0.5, cost=1.0)


def test_records_go_through_json():
    optimizer = played(1)
    (decision,), (observation,) = optimizer.decisions, optimizer.observations
    assert bc.SubsetDecision.from_dict(decision.to_dict()) == decision
    assert bc.SubsetObservation.from_dict(observation.to_dict()) == observation
    assert hash(decision) == hash(bc.SubsetDecision.from_dict(decision.to_dict()))
    with pytest.raises(TypeError):
        decision.fidelities["fraction"] = 0.5
    with pytest.raises(errors.InvalidArgumentError, match="fidelities"):
        bc.SubsetDecision(0, {"x": 0.1}, query=True, reason="", fidelities={})


def test_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    played(5, sampling=FAST)
    assert torch.equal(torch.get_rng_state(), before)


def test_where_all_failed_nothing_is_believed_best():
    optimizer = bc.SubsetOptimizer(SPACE, sampling=FAST)
    for _ in range(4):
        optimizer.tell(optimizer.ask(), math.nan)
    assert optimizer.best() is None
    assert "best" not in optimizer.summary()
    assert optimizer.predict([{"x": 0.5}]) is None
    asked = optimizer.ask()
    optimizer.tell(asked, 1.0)
    assert optimizer.best() is not None


@pytest.mark.parametrize("cost", quick([1e-310, 1e-50, 1e50, 1e308], 1e308))
def test_any_cost_that_is_taken_is_computed_with(cost):
    """The kind: a cost that a float holds is none in the precision of what is computed."""
    optimizer = bc.SubsetOptimizer(SPACE, sampling=FAST, overhead=1e-3, dtype=torch.float32)
    for number in range(4):
        optimizer.tell(optimizer.ask(), 0.1 * number, cost=cost)
    assert "most information" in optimizer.ask().reason
    assert math.isfinite(optimizer.total_cost) == (cost < 1e300)


def test_a_level_of_values_hides_no_difference_in_single_precision():
    """The kind: what is chosen by is rounded in the unit of what was told."""
    optimizer = bc.SubsetOptimizer(SPACE, sampling=FAST, dtype=torch.float32)
    tried = [{"x": number / 8} for number in range(9)]
    for config in tried:
        told = 1e8 - (config["x"] - 0.5) ** 2
        optimizer.tell(optimizer.enqueue(config, {"fraction": 1.0}), told)
    mean, std = optimizer.predict(tried)
    assert len(set(mean.tolist())) > 3
    assert dict(optimizer.best()) == tried[int((mean - 0.5 * std).argmax())]


@pytest.mark.parametrize("seed", quick(range(3), 0))
def test_what_is_recommended_was_evaluated_and_is_sure(seed):
    pairs = [({"x": x / 20}, {"fraction": s}) for x in range(21) for s in (0.05, 0.3, 1.0)]
    optimizer = played(9, candidates=pairs, sampling=FAST, seed=seed)
    tried = list(dict.fromkeys(o.config["x"] for o in optimizer.observations))
    mean, std = optimizer.predict([{"x": x} for x in tried])
    values = dict(zip(tried, (mean + 0.5 * std).tolist(), strict=True))  # smaller is better
    best = optimizer.best()["x"]
    assert best in values
    if all(
        d.fidelities["fraction"] < 1 for d in optimizer.decisions
    ):  # else values there rule some out
        assert values[best] == min(values.values())


@pytest.mark.parametrize("far", quick([1e3, 1e6, 1e300], 1e3))
def test_one_value_far_off_all_others_does_not_hide_them(far):
    # The kind: a finite outlier sets the units of the belief, in which all other values are alike.
    optimizer = bc.SubsetOptimizer(SPACE, maximize=False, sampling=QUICK)
    for number in range(11):
        asked = optimizer.ask()
        share = asked.fidelities["fraction"]
        told = far if number == 3 else loss(asked.config["x"], share)
        optimizer.tell(asked, told, cost=share)
    assert abs(optimizer.best()["x"] - 0.35) < 0.2
    assert abs(optimizer.predict([{"x": 0.3}])[0] - loss(0.3, 1.0)) < 0.2


def plainly_recommendable(configs, points, values):
    """The naive twin of ``recommendable``, by rows."""
    good = []
    at_target = sorted(v for p, v in zip(points, values, strict=True) if p[-1] == 1 and v == v)
    for config in configs:
        tried = [(p[-1], v) for p, v in zip(points, values, strict=True) if p[:-1] == config]
        highest = max((s for s, _ in tried), default=None)
        whole = [v for s, v in tried if s == 1 and v == v]
        failed = bool(tried) and all(v != v for s, v in tried if s == highest)
        half = len(at_target) // 2
        low = bool(whole) and max(whole) < (at_target[half] + at_target[~half]) / 2
        good.append(not failed and not low)
    if any(good):
        return good
    finite = [p[:-1] for p, v in zip(points, values, strict=True) if v == v]
    return [config in finite for config in configs]


@pytest.mark.parametrize("seed", range(30))
def test_what_may_be_recommended_follows_from_what_was_seen(seed):
    generator = torch.Generator().manual_seed(seed)
    count = 2 + seed // 2

    def drawn(levels, *shape):
        return torch.randint(levels, shape, generator=generator).double() / (levels - 1)

    points, values = drawn(4, count, 2), drawn(9, count)
    values[drawn(3, count) == 0] = math.nan
    values[-1] = 0.5
    configs = drawn(4, 4, 1)
    expected = plainly_recommendable(configs.tolist(), points.tolist(), values.tolist())
    seen = points[:, :1]
    for some, wanted in ((configs, expected), (seen, None)):
        actual = recommendable(some, points, values)
        if wanted is None:
            wanted = plainly_recommendable(some.tolist(), points.tolist(), values.tolist())
            assert actual.any()
        assert actual.tolist() == wanted


def plainly_supported(configs, points, values, allowed):
    """The naive twin of ``supported``, by rows."""
    known = [(p[:-1], p[-1], v) for p, v in zip(points, values, strict=True) if v == v]
    reached = [max((s for c, s, _ in known if c == config), default=-1.0) for config in configs]
    ranked = sorted((r for r, a in zip(reached, allowed, strict=True) if a), reverse=True)
    least = ranked[: max(16, math.ceil(len(ranked) / 3))][-1]
    kept = []
    for config, highest, ok in zip(configs, reached, allowed, strict=True):
        best = max((v for c, s, v in known if c == config and s == highest), default=-math.inf)
        rivals = [v for _, s, v in known if s <= highest]
        ahead = bool(rivals) and best >= numpy.quantile(rivals, 0.8) - 1e-9
        kept.append(ok and (highest >= least or ahead))
    return kept


@pytest.mark.parametrize("seed", range(30))
def test_the_evaluations_of_a_recommended_configuration_speak_for_it(seed):
    generator = torch.Generator().manual_seed(seed)
    count = 2 + 4 * seed
    points = torch.rand(count, 2, generator=generator, dtype=torch.float64)
    points[:, 0] = (40 * points[:, 0]).round() / 40  # some configurations several times,
    points[:, 1] = (6 * points[:, 1]).round() / 6  # and few fidelities, so that there are ties
    values = torch.rand(count, generator=generator, dtype=torch.float64)
    values[2::7] = math.nan
    configs = points[:, :1].unique(dim=0)
    allowed = recommendable(configs, points, values)
    actual = supported(configs, points, values, allowed)
    arguments = (tensor.tolist() for tensor in (configs, points, values, allowed))
    assert actual.tolist() == plainly_supported(*arguments)
    assert actual.any()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_configuration_that_a_small_part_shows_nothing_of_is_not_supported(dtype):
    # Beyond a cliff the model follows the neighbours, and a small part shows nothing that contradicts it.
    x = torch.linspace(0, 1, 40, dtype=dtype)
    points = torch.stack([x, torch.full_like(x, 0.5)], -1)
    points[::2, 1] = 0.0
    values = torch.linspace(0.0, 1.0, 40, dtype=torch.float64)
    values[::2] = 0.1 * values[::2]
    values[38] = 0.01  # beside the best one
    every = torch.ones(40, dtype=torch.bool)
    kept = supported(points[:, :1], points, values, every)
    assert kept[39]
    assert not kept[38]
    assert kept[
        36
    ]  # the best of the small parts: it may be the optimum, though no larger part says so


@pytest.mark.parametrize("seed", quick(range(6), 0, 3))
def test_the_best_has_not_failed_and_is_not_known_to_be_bad(seed):
    """A law on random histories, whatever the model makes of them."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = bc.SubsetOptimizer(SPACE, sampling=FAST, seed=seed)
    told = []
    for number in range(8):
        x, share, value = torch.rand(3, generator=generator).tolist()
        share = 1.0 if number % 2 else max(share, 0.01)
        failed = number in (1, 4)
        optimizer.tell(
            optimizer.enqueue({"x": x}, {"fraction": share}), math.nan if failed else value
        )
        told.append((x, share, failed, value))
    best = optimizer.best()["x"]
    ((_, share, failed, value),) = (row for row in told if row[0] == best)
    whole = [row[3] for row in told if row[1] == 1.0 and not row[2]]
    assert not failed
    assert share < 1.0 or value > min(whole)


@pytest.mark.filterwarnings("ignore:Negative variance")  # GPyTorch rounds those below 1e-6 up
@pytest.mark.parametrize(
    "steps", [(30, 60, 120, 140), pytest.param((30, 60, 120, 255), marks=pytest.mark.slow)]
)
def test_crowded_evaluations_in_single_precision_have_a_model(steps):
    """Hyperparameters whose covariance of some evaluations has a factor may have none for all."""
    space = bc.SearchSpace({"x": bc.Real(0.0, 1.0), "y": bc.Real(0.0, 1.0)})
    draws = torch.Generator().manual_seed(0)
    X = torch.rand(255, 3, generator=draws, dtype=torch.float64)
    X[20:, :2] = 0.4 + 1e-3 * torch.randn(235, 2, generator=draws, dtype=torch.float64)
    X[20:, 2] = 1.0
    values = -(X[:, :2] - 0.4).square().sum(-1)
    fraction = bc.SearchSpace({"fraction": bc.Real(1 / 512, 1.0, log=True)})
    belief = SubsetBelief(space, fraction, FAST, torch.Generator().manual_seed(1))
    points = X.float()
    for n in steps:
        data = TemperedData(points[:n], values[:n], torch.ones(n, dtype=torch.float64))
        beliefs = belief.learn(data, points[:0])
    assert bool(beliefs.best.isfinite())
    assert bool(belief.at_target(beliefs.model, points[:20, :2]).isfinite().all())


def test_a_state_names_its_candidates_as_states_of_earlier_versions_do():
    space = bc.SearchSpace({"lr": bc.Real(0.0, 1.0)})
    listed = [({"lr": rate}, {"fraction": 0.5}) for rate in (0.25, 0.5, 1 / 3)]
    optimizer = bc.SubsetOptimizer(space, candidates=listed)
    rows = optimizer._domain.listed.round(decimals=9).contiguous().numpy().tobytes()
    digest = f"'3 evaluations, {hashlib.sha256(rows).hexdigest()[:16]}'"
    assert optimizer.state_dict()["header"]["candidates"] == digest
