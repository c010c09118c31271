"""The batched run against a loop written from the paper."""

from dataclasses import dataclass, field

import pytest
import torch

from botorch_costly.acquisition import LogBeta
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.numerics.stationary import Stationary
from botorch_costly.problems import DriftingFunction
from botorch_costly.query import (
    AlwaysQuery,
    BernoulliQuery,
    ConfidenceBoundQuery,
    ConfidenceQuery,
    PricedQuery,
)
from botorch_costly.simulation import (
    Draws,
    GridPolicy,
    draw,
    expected_improvement,
    play,
    probability_of_improvement,
)
from tests.oracles import ce_gp_ucb, dense_gp
from tests.strategies import each, tensors

TRIALS, HORIZON, POINTS = 3, 30, 17


@dataclass
class Case:
    policy: GridPolicy
    rule: tuple
    options: dict


CASES = {
    "always": Case(GridPolicy("", AlwaysQuery()), ("always", None), {}),
    "coin": Case(GridPolicy("", BernoulliQuery(0.4)), ("coin", 0.4), {}),
    "coin as printed": Case(
        GridPolicy("", BernoulliQuery(0.4), ages=False),
        ("coin", 0.4),
        {"clock_counts_queries": True},
    ),
    "confidence": Case(GridPolicy("", ConfidenceQuery(0.8)), ("marginal", 0.8), {}),
    "joint": Case(GridPolicy("", ConfidenceQuery(0.9, joint=True), joint=True), ("joint", 0.9), {}),
    "literal": Case(
        GridPolicy("", ConfidenceQuery(0.8), lone_rival=False),
        ("marginal", 0.8),
        {"bandwidth": None},
    ),
    "bounds": Case(GridPolicy("", ConfidenceBoundQuery()), ("bounds", None), {}),
    "restarts": Case(
        GridPolicy("", AlwaysQuery(), forgetting=0.0, restart_every=7),
        ("always", None),
        {"forgetting": 0.0, "restart_every": 7},
    ),
}


@pytest.fixture(scope="module")
def setting():
    generator = torch.Generator().manual_seed(5)
    # Uneven points: on an even grid two equally good ones may lie on either side of a query.
    points = torch.rand(POINTS, 1, generator=generator, dtype=torch.float64).sort(0).values
    unit = torch.ones((), dtype=torch.float64)
    truth = DriftingFunction(points, Stationary("matern32", 0.2 * unit, unit), 0.1, 0.01)
    return truth, draw(truth, range(TRIALS), HORIZON, seed=38)


@pytest.fixture(scope="module")
def all_together(setting):
    """All cases in one program."""
    truth, draws = setting
    return play(truth, [case.policy for case in CASES.values()], draws)


@pytest.mark.parametrize("name", CASES)
def test_a_run_is_the_loop_of_the_paper(setting, all_together, name):
    """Also in one program with all the others, of which some age and some start afresh."""
    truth, draws = setting
    case = CASES[name]
    run = play(truth, [case.policy], draws)
    together = all_together.of(list(CASES).index(name))
    prior = dense_gp.matern(truth.points, truth.points, 0.2, nu=1.5)
    options = {"forgetting": truth.forgetting, **case.options}
    for i in range(TRIALS):
        history = ce_gp_ucb.run(
            draws.paths[i], draws.noise[i], truth.points[:, 0].tolist(), prior,
            noise_variance=truth.noise, rule=case.rule, beta=LogBeta(), opening=int(draws.opening[i]),
            coins=draws.coins[i].tolist(), **options,
        )  # fmt: skip
        choice, query, regret = zip(*history, strict=True)
        expected = torch.tensor(regret, dtype=torch.float64)
        for run_ in (run.of(0), together):
            assert run_.query[i].tolist() == list(query)
            assert run_.choice[i].tolist() == list(choice)
            torch.testing.assert_close(run_.regret[i], expected, rtol=0, atol=1e-12)


def test_the_cases_tell_the_rules_apart(setting):
    run = play(setting[0], [case.policy for case in CASES.values()], setting[1])
    queries = dict(zip(CASES, run.query, strict=True))
    assert not queries["confidence"].equal(queries["joint"])
    assert not queries["confidence"].equal(queries["literal"])
    assert not queries["confidence"].equal(queries["bounds"])
    assert not queries["bounds"].all()


def test_the_belief_returned_is_that_after_the_last_query(setting):
    truth, draws = setting
    run = play(truth, [GridPolicy("", AlwaysQuery())], draws).of(0)
    prior = dense_gp.matern(truth.points, truth.points, 0.2, nu=1.5)
    for i in range(TRIALS):
        y = (
            (draws.paths[i] + draws.noise[i, :, None])
            .gather(-1, run.choice[i, :, None])
            .squeeze(-1)
        )
        queries = list(zip(range(HORIZON), run.choice[i].tolist(), y.tolist(), strict=True))
        mean, cov = ce_gp_ucb.belief(prior, truth.forgetting, truth.noise, queries, HORIZON - 1)
        torch.testing.assert_close(run.mean[i], mean, rtol=0, atol=1e-8)
        torch.testing.assert_close(run.variance[i], cov.diagonal(), rtol=0, atol=1e-8)


def test_a_history_is_played_whatever_would_be_decided(setting):
    truth, draws = setting
    always, rule = GridPolicy("", AlwaysQuery()), GridPolicy("", ConfidenceQuery(0.8))
    first = play(truth, [rule], draws)
    again = play(truth, [rule], draws, history=first)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    other = play(truth, [always], draws, history=first)
    assert other.query.all()  # its decisions
    assert torch.equal(other.regret, first.regret)  # that of the history
    assert torch.equal(other.mean, first.mean)


def hill(horizon=120):
    """A world whose function has one hill, of which the first query sees the top."""
    truth = DriftingFunction.on_unit_interval(41, forgetting=0.05)
    x = truth.points[:, 0]
    paths = (3 * torch.exp(-10 * (x - 0.5) ** 2)).expand(1, horizon, -1)
    nothing = torch.zeros(1, horizon, dtype=torch.float64)
    return truth, Draws(paths, nothing, nothing, torch.tensor([20]))


def test_the_literal_rule_never_queries_again_at_a_lone_optimum():
    literal = GridPolicy("", ConfidenceQuery(0.9), lone_rival=False)
    truth, draws = hill()
    # The opening is the middle of the plateau: not even the first round has a rival.
    query = play(truth, [literal], draws).query
    assert query.sum() <= 1
    assert not query[..., 1:].any()


def test_a_far_rival_keeps_the_rule_querying():
    truth, draws = hill()
    run = play(truth, [GridPolicy("", ConfidenceQuery(0.9))], draws)
    assert run.query[..., 60:].any()
    everyone_is_near = play(truth, [GridPolicy("", ConfidenceQuery(0.9))], draws, bandwidth=1.0)
    assert not everyone_is_near.query[..., 1:].any()


def test_improvement_is_finite_where_nothing_is_left_to_learn():
    mean, std = torch.tensor([[0.0, 1.0, 1.0]]), torch.tensor([[1.0, 0.0, 1.0]])
    gain = expected_improvement(mean, std, 1.0)
    assert gain.isfinite().all()
    assert gain.argmax() == 2
    assert gain[0, 2].item() == pytest.approx(0.3989423)
    chance = probability_of_improvement(mean, std, 1.0)
    assert not chance.isnan().any()
    assert chance.argmax() == 2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"paths": (2, 5, 9)}, r"paths: Expected shape \(trials, horizon, 10\)"),
        ({"paths": (5, 10)}, "paths: Expected shape"),
        ({"noise": (2, 6)}, r"noise: Expected shape \(2, 5\)"),
        ({"coins": (5,)}, "coins: Expected shape"),
        ({"opening": (3,)}, r"opening: Expected shape \(2,\)"),
    ],
)
def test_shapes_are_checked(changed, message):
    shapes = {"paths": (2, 5, 10), "noise": (2, 5), "coins": (2, 5), "opening": (2,), **changed}
    parts = {name: torch.zeros(shape) for name, shape in shapes.items()}
    draws = Draws(**{**parts, "opening": parts["opening"].long()})
    truth = DriftingFunction.on_unit_interval(10)
    with pytest.raises(InvalidShapeError, match=message):
        play(truth, [GridPolicy("", AlwaysQuery())], draws)


@pytest.mark.parametrize(
    ("name", "dtype"), [("paths", torch.long), ("noise", torch.float16), ("opening", torch.double)]
)
def test_dtypes_are_checked(name, dtype):
    truth = DriftingFunction.on_unit_interval(10)
    draws = draw(truth, range(2), 5)
    wrong = draws._replace(**{name: getattr(draws, name).to(dtype)})
    with pytest.raises(InvalidShapeError, match=rf"{name}: Expected .*; Received {dtype}"):
        play(truth, [GridPolicy("", AlwaysQuery())], wrong)
    elsewhere = draws._replace(**{name: getattr(draws, name).to("meta")})
    with pytest.raises(InvalidShapeError, match="Expected to be on"):
        play(truth, [GridPolicy("", AlwaysQuery())], elsewhere)


def test_what_is_passed_in_is_not_changed():
    truth, policy = DriftingFunction.on_unit_interval(30), GridPolicy("", PricedQuery(budget=6))
    draws = draw(truth, range(3), 20)
    before = [tensor.clone() for tensor in draws]
    run = play(truth, [policy], draws)
    result = [tensor.clone() for tensor in run]
    play(truth, [policy], draws, history=run)
    for tensor, kept in zip([*draws, *run], [*before, *result], strict=True):
        assert torch.equal(tensor, kept)


@dataclass(frozen=True)
class Keeping(PricedQuery):
    """A rule that records its inputs, and copies of them."""

    heard: list = field(default_factory=list, compare=False)

    def __call__(self, comparison, progress, generator):
        inputs = (comparison, progress)
        self.heard.append((inputs, each(inputs, torch.clone)))
        return super().__call__(comparison, progress, generator)


def test_what_a_rule_is_told_is_not_changed_later():
    truth, rule = DriftingFunction.on_unit_interval(30), Keeping(budget=6)
    play(truth, [GridPolicy("", rule)], draw(truth, range(3), 40))
    assert len(rule.heard) == 40
    for inputs, kept in rule.heard:
        for tensor, copy in zip(tensors(inputs), tensors(kept), strict=True):
            assert torch.equal(tensor.nan_to_num(-9.0), copy.nan_to_num(-9.0))


def test_what_does_not_fit_is_named():
    truth, policy = DriftingFunction.on_unit_interval(10), GridPolicy("", AlwaysQuery())
    draws = draw(truth, range(2), 5)
    with pytest.raises(InvalidArgumentError, match=r"opening: Expected points in 0\.\.9"):
        play(truth, [policy], draws._replace(opening=torch.tensor([0, 10])))
    history = play(truth, [policy], draws)
    with pytest.raises(InvalidShapeError, match=r"history: Expected shape \(2, 2, 5\)"):
        play(truth, [policy, policy], draws, history=history)
    with pytest.raises(InvalidArgumentError, match="bandwidth: Expected"):
        play(truth, [policy], draws, bandwidth=-1.0)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("rule", "always"),
        ("forgetting", 1.5),
        ("restart_every", 0),
        ("unqueried_play", "nothing"),
    ],
)
def test_a_policy_names_what_is_wrong_with_it(option, value):
    options = {"rule": AlwaysQuery(), option: value}
    with pytest.raises(InvalidArgumentError, match=f"{option}: Expected .*; Received"):
        GridPolicy("", **options)
