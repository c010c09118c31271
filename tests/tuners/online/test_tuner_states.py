"""A state is all that the next decisions depend on, and nothing that a later round changes."""

import copy
import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors
from botorch_costly.query import ConfidenceQuery
from tests.cases import quick, slow
from tests.tuners.online.playing import make, play, reward_of, through_a_file
from tests.tuners.online.states import SPACES, count_slowly, leaves, same


@pytest.mark.parametrize("name", quick(SPACES, "mixed", "cube", "arms"))
@pytest.mark.parametrize(
    ("dtype", "acquisition"), [slow((torch.float32, "ei")), (torch.float64, "ucb")]
)
def test_a_run_restored_after_every_round_is_the_same_run(name, dtype, acquisition):
    """Late and failed tells, refits that learn the rate, unqueried rounds: nothing is forgotten."""

    def build(seed):
        return make(
            SPACES[name],
            seed=seed,
            dtype=dtype,
            acquisition=acquisition,
            kernel="matern52",
            query=bc.MixedQuery(10, 50, 60, ConfidenceQuery(0.8)),
            refit_every=4,
            refit_seconds=60.0,
            learn_forgetting=True,
            unqueried_play="mean",
            initial_rounds=3,
            max_queries=20,
        )

    def step(tuner, i):
        tuner.ask()
        late = tuner.decisions[max(i - 3, 0)]  # told three rounds later
        told = {o.round for o in tuner.observations}
        if late.query and late.round not in told:
            reward = math.nan if late.round % 7 == 6 else reward_of(late.config, late.round)
            tuner.tell(late, reward, seconds=0.25)

    whole, relay = build(3), build(3)
    for i in range(12):
        step(whole, i)
        fresh = build(100 + i)  # of another seed: the state decides
        fresh.load_state_dict(through_a_file(relay.state_dict()), changed=["seed"])
        relay = fresh
        step(relay, i)
    assert relay.history == whole.history
    assert (relay.queries, relay.failed_queries) == (whole.queries, whole.failed_queries)
    assert same({**relay.state_dict(), "header": None}, {**whole.state_dict(), "header": None})


@pytest.mark.parametrize("name", quick(SPACES, "mixed", "arms"))
def test_a_state_does_not_change_while_the_run_goes_on(name):
    """Nor does the run when it is saved, or another that was restored from it goes on."""
    options = {
        "refit_every": 7,
        "refit_seconds": 60.0,
        "forgetting": 0.9,
        "kernel": "matern52",
    }  # rows come and go
    tuner = make(SPACES[name], query=bc.AlwaysQuery(), **options)
    play(tuner, 10)
    state = tuner.state_dict()
    kept = copy.deepcopy(state)
    other = make(SPACES[name], query=bc.AlwaysQuery(), **options)
    other.load_state_dict(state)
    ours = play(tuner, 8)
    assert same(state, kept)
    assert play(other, 8) == ours
    assert same(state, kept)


def test_a_state_of_a_longer_run_fits_a_tuner_with_another_horizon():
    state = make().state_dict()
    played = make()
    play(played, 20)
    longer = make(horizon=None, seed=8, initial_rounds=4, query=bc.AlwaysQuery())
    longer.load_state_dict(played.state_dict(), changed=["horizon", "seed", "design", "query"])
    assert longer.decisions == played.decisions
    play(longer, 50)
    assert len(longer.decisions) == 70
    shorter = make(horizon=20)
    shorter.load_state_dict(played.state_dict(), changed=["horizon"])
    with pytest.raises(errors.HorizonExceededError, match=r"at most 20 rounds, .* Received 21"):
        shorter.ask()
    shorter.load_state_dict(state, changed=["horizon"])  # and back to the beginning
    assert shorter.decisions == ()
    assert shorter.queries == 0
    assert shorter.ask().config == make().ask().config


@pytest.mark.parametrize(
    ("part", "damage"),
    [
        ("generator", [1, 2]),
        ("generator", torch.zeros(3)),
        ("ledger", {"suggestions": "[{", "outcomes": "[]"}),
        ("ledger", {"suggestions": '[{"round": 0}]', "outcomes": "[]"}),
        ("ledger", {"suggestions": "[]", "outcomes": "{}}"}),
        ("ledger", {"suggestions": "[]"}),
        ("learner", {"model": {}, "num_told": 0}),
        ("learner", []),
        ("strategy", {"rivals": None}),
    ],
)
def test_a_state_with_a_damaged_part_changes_nothing(part, damage):
    tuner = make()
    play(tuner, 8)
    before = copy.deepcopy(tuner.state_dict())
    with pytest.raises(errors.StateMismatchError, match="complete state_dict"):
        tuner.load_state_dict({**make().state_dict(), part: damage})
    assert same(tuner.state_dict(), before)
    assert tuner.queries == count_slowly(tuner)


def test_a_state_of_another_precision_is_refused():
    state = make(dtype=torch.float32).state_dict()
    with pytest.raises(
        errors.StateMismatchError, match=r"dtype: Expected torch\.float64; Received"
    ):
        make().load_state_dict(state)


def test_states_hold_tensors_lists_and_plain_values_alone():
    tuner = make(refit_every=4, query=bc.AlwaysQuery())
    play(tuner, 9)
    for leaf in leaves(tuner.state_dict()):
        assert isinstance(leaf, torch.Tensor | str | int | float | None)


def test_a_run_is_extended_from_a_file(tmp_path):
    short, long = make(horizon=20), make(horizon=40)
    play(short, 20)
    short.save(tmp_path / "tuner.pt")
    with pytest.raises(errors.StateMismatchError, match="option horizon: Expected 40; Received 20"):
        long.load(tmp_path / "tuner.pt")
    long.load(tmp_path / "tuner.pt", changed=["horizon"])
    assert long.decisions == short.decisions
    play(long, 20)
    with pytest.raises(errors.InvalidArgumentError, match="changed: Expected names among"):
        long.load(tmp_path / "tuner.pt", changed=["horizont"])
