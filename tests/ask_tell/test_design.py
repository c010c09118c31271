"""The first rounds: the current setting, then random ones, within what the run may pay for."""

import itertools
import math

import numpy as np
import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors
from botorch_costly.ask_tell.design import design, sobol
from tests.cases import slow
from tests.tuners.online.grouped import grouped
from tests.tuners.online.playing import SPACES, make, play


@pytest.mark.parametrize("name", ["cube", "arms"])
@pytest.mark.parametrize("options", [{"initial_rounds": 0}, {"horizon": 5}, {"max_queries": 0}, {}])
def test_the_start_is_played_however_few_the_initial_rounds(name, options):
    start = {"cube": {"lr": 1e-3, "dropout": 0.5}, "arms": {"arm": "middle"}}[name]
    first = make(SPACES[name], start=start, **options).ask()
    assert dict(first.config) == start
    assert first.query == (options.get("max_queries") != 0)


@pytest.mark.parametrize("value", [np.float64(1e-2), np.float32(1e-2)])
def test_a_start_may_hold_scalars_of_numpy(value):
    lr = make(start={"lr": value, "dropout": 0.5}).ask().config["lr"]
    assert type(lr) is float
    assert lr == float(value)


@pytest.mark.parametrize("value", ["0.1", None, np.ones(1)])
def test_a_start_that_is_no_configuration_is_refused_at_once(value):
    with pytest.raises(errors.InvalidConfigError, match="lr: Expected a number; Received"):
        make(start={"lr": value, "dropout": 0.5})


def test_no_budget_is_spent_on_a_design_that_nobody_may_query_at():
    assert all(d.query for d in play(make(max_queries=2), 2))
    third = make(max_queries=2)
    play(third, 2)
    assert "initial" not in third.ask().reason
    with pytest.raises(errors.InvalidBudgetError, match="at most the max_queries, 2; Received 3"):
        make(max_queries=2, initial_rounds=3)


@pytest.mark.parametrize(
    "limit", [{"max_queries": 10}, {"query": bc.PricedQuery(budget=12)}, {"horizon": 39}]
)
def test_a_design_shrinks_to_what_many_rounds_of_the_start_leave(limit):
    start = {"lr": 1e-3, "dropout": 0.5}
    most = limit.get("max_queries") or limit.get("horizon") or 12
    tuner = make(**{"horizon": 60, **limit}, start=start, start_rounds=most)
    decisions = play(tuner, most)
    assert all(dict(d.config) == start and d.query for d in decisions)
    with pytest.raises(errors.InvalidBudgetError, match="together: Expected at most the"):
        make(**{"horizon": 60, **limit}, start=start, start_rounds=most, initial_rounds=2)


def test_the_start_may_be_played_for_some_rounds_before_random_ones():
    start = {"lr": 1e-3, "dropout": 0.5}
    tuner = make(start=start, start_rounds=4, initial_rounds=3, query=bc.BernoulliQuery(0.0))
    play(tuner, 8)
    starts = [dict(d.config) == start for d in tuner.decisions]
    assert starts[:6] == [True] * 4 + [False] * 2
    assert [d.query for d in tuner.decisions] == [True] * 6 + [False] * 2
    assert tuner.decisions[5].reason == "initial design (interval 6 of 6)"


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        (
            {"start_rounds": 0},
            errors.InvalidArgumentError,
            "start_rounds: Expected an integer >= 1",
        ),
        ({"start_rounds": 3}, errors.InvalidArgumentError, "start_rounds: Expected 1 without a st"),
        (
            {"start": {"lr": 1e-3, "dropout": 0.5}, "start_rounds": 7, "max_queries": 6},
            errors.InvalidBudgetError,
            "start_rounds: Expected at most the max_queries, 6",
        ),
    ],
)
def test_rounds_of_the_start_that_cannot_be_are_named(options, error, match):
    with pytest.raises(error, match=match):
        make(**options)


def test_numbers_are_screened_at_two_levels_and_choices_are_drawn():
    space = bc.SearchSpace(
        {
            "lr": bc.Real(1e-4, 1.0, log=True),
            "depth": bc.Integer(1, 11),
            "policy": bc.Choice(["a", "b", "c"]),
            "momentum": bc.Real(0.0, 1.0),
        }
    )
    tuner = bc.OnlineTuner(
        space,
        200,
        seed=1,
        design=bc.Design(rounds=8),
        hold=bc.Hold(share=0.0),
        search=bc.Search(num_restarts=4),
    )
    configs = [d.config for d in play(tuner, 8)]
    for name, low, high in (("lr", 10**-3.6, 10**-0.4), ("momentum", 0.1, 0.9)):
        values = sorted(config[name] for config in configs)
        assert values == pytest.approx([low] * 4 + [high] * 4)
    depths = sorted(config["depth"] for config in configs)
    assert depths[3] < 3 < 9 < depths[4]
    assert len({config["policy"] for config in configs}) > 1
    pairs = {(config["lr"] < 0.01, config["momentum"] < 0.5) for config in configs}
    assert len(pairs) == 4  # whatever one number is, the other is both


@pytest.mark.parametrize("name", sorted(SPACES))
def test_a_screening_is_drawn_from_the_seed_and_follows_the_start(name):
    options = {"horizon": 200, "initial_rounds": 4, "hold": 0.0, "num_restarts": 4}

    def first(seed):
        return [
            d.config for d in play(bc.OnlineTuner(SPACES[name], seed=seed, **grouped(options)), 4)
        ]

    assert first(1) == first(1)
    assert len({tuple(map(str, first(seed))) for seed in range(8)}) > 1


def test_the_design_follows_the_start_in_its_order():
    start = {"lr": 1e-3, "dropout": 0.5}
    tuner = bc.OnlineTuner(
        SPACES["cube"],
        200,
        start=start,
        seed=2,
        design=bc.Design(start_rounds=3),
        hold=bc.Hold(share=0.0),
        limits=bc.Limits(rate_factor=math.inf),
    )
    design = [SPACES["cube"].decode(x) for x in tuner._strategy.proposer._opening.others]
    assert [dict(d.config) for d in play(tuner, 3 + len(design))] == [start] * 3 + design


def test_every_choice_is_drawn_alike():
    space = bc.SearchSpace({"policy": bc.Choice(["a", "b", "c"]), "lr": bc.Real(0.0, 1.0)})
    drawn = []
    for seed in range(30):
        tuner = bc.OnlineTuner(space, 200, seed=seed, design=bc.Design(rounds=8))
        drawn += [space.decode(x)["policy"] for x in tuner._strategy.proposer._opening.others]
    assert all(60 < drawn.count(option) < 100 for option in "abc")


def test_an_unknown_design_is_named():
    with pytest.raises(errors.InvalidArgumentError, match="design kind: Expected one of"):
        make(initial_design="latin")


EDGES = {
    "numbers": (SPACES["cube"], {"lr": 1e-3, "dropout": 0.5}),
    "arms": (SPACES["arms"], {"arm": "middle"}),
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("screening", "numbers"),
        ("screening", "arms"),
        *(slow((kind, "numbers")) for kind in ("sobol", "random")),
        *((kind, "arms") for kind in ("sobol", "random")),
    ],
)
@pytest.mark.parametrize("horizon", [None, 1, 4])
def test_each_combination_of_extremes_plays_or_is_refused_by_name(kind, name, horizon):
    """The kind: designs, starts, horizons and limits that are fine by themselves and fail together."""
    space, start = EDGES[name]
    played = 0
    rounds = itertools.product([None, 0, 1, 3], [None, 1, 3], [None, 0, 2], [None, start])
    for first, of_start, most, begin in rounds:
        options = {"start": begin, "limits": bc.Limits(max_queries=most)}
        wanted = bc.Design(kind=kind, rounds=first, start_rounds=of_start)
        try:
            tuner = bc.OnlineTuner(space, horizon, design=wanted, **options)
        except (errors.InvalidBudgetError, errors.InvalidArgumentError):
            continue
        decisions = [tuner.ask() for _ in range(1 if horizon == 1 else 4)]
        played += 1
        if begin is not None:
            assert dict(decisions[0].config) == begin
    assert played >= 10


@pytest.mark.parametrize("kind", ["screening", "sobol"])
def test_a_design_of_no_point_has_none_and_of_few_points_the_first_ones(kind):
    space = SPACES["cube"]
    assert design(space, 0, kind, seed=0).shape == (0, space.dim)
    assert design(space, 1, kind, seed=0).shape == (1, space.dim)
    if kind == "sobol":
        assert torch.equal(design(space, 1, kind, 3), design(space, 5, kind, 3)[:1])


def test_a_space_with_more_dimensions_than_the_sequence_is_refused():
    wide = bc.SearchSpace({"which": bc.Choice(list(range(22_000)))})
    with pytest.raises(errors.InvalidSpaceError, match="at most 21201 dimensions"):
        sobol(wide, 2, seed=0)
