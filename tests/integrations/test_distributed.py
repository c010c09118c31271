"""One tuner for all ranks: decisions are the same everywhere, and a lost rank is reported."""

import pytest
import torch
import torch.distributed as dist

import botorch_costly as bc
from botorch_costly.errors import (
    HorizonExceededError,
    InvalidArgumentError,
    StateMismatchError,
)
from botorch_costly.integrations.distributed import SharedTuner
from botorch_costly.integrations.ranks import Ranks
from tests.integrations.launching import launched
from tests.integrations.ranks_program import ROUNDS, draws, driver, metric, play, seed, tuner

if not dist.is_gloo_available():
    pytest.skip("this build of torch has no gloo", allow_module_level=True)


# -- on one rank -----------------------------------------------------------------------------------


def by_hand(tuner, ranks, rounds=ROUNDS):
    """The same run in one process that measures what each rank would: the naive twin."""
    seen = []
    for _ in range(rounds):
        decision, loss = tuner.ask(), None
        if decision.query:
            weights = [1 + 2 * rank for rank in range(ranks)]
            parts = [metric(decision, rank) for rank in range(ranks)]
            loss = sum(m * w for m, w in zip(parts, weights, strict=True)) / sum(weights)
            tuner.tell(decision, -loss)
        seen.append([decision.to_dict(), loss])
    return seen


def test_a_single_rank_is_the_tuner_itself():
    assert play(SharedTuner(tuner()), 0, ROUNDS) == by_hand(tuner(), 1)


def test_a_single_rank_writes_no_message(monkeypatch):
    shared = SharedTuner(tuner())
    monkeypatch.setattr(shared.ranks, "receive", None)
    assert shared.ask() == shared.tuner.decisions[-1]


def test_a_single_rank_raises_what_the_tuner_raises():
    shared = SharedTuner(tuner(horizon=1))
    shared.ask()
    with pytest.raises(HorizonExceededError):
        shared.ask()


def test_a_state_continues():
    shared, resumed = SharedTuner(tuner()), SharedTuner(tuner())
    play(shared, 0, 7)
    resumed.load_state_dict(shared.state_dict())
    assert resumed.asked == 7
    assert play(resumed, 0, ROUNDS - 7) == by_hand(tuner(), 1)[7:]


def test_a_decision_that_did_not_arrive_is_the_next_one_again(monkeypatch):
    shared, resumed = SharedTuner(tuner()), SharedTuner(tuner())
    seen = play(shared, 0, 7)

    def lost(*_):
        raise ConnectionError

    with monkeypatch.context() as patch:  # rank 0 of two
        patch.setattr(shared.ranks, "count", 2)
        patch.setattr(shared.ranks, "meet", lambda *_: None)
        patch.setattr(shared.ranks, "receive", lost)
        for _ in range(2):
            with pytest.raises(ConnectionError):
                shared.ask()
    resumed.load_state_dict(shared.state_dict())
    for one in (shared, resumed):
        assert seen + play(one, 0, ROUNDS - 7) == by_hand(tuner(), 1)


@pytest.mark.parametrize("wrong", [None, {}, {"tuner": None, "asked": 3, "delivered": True}])
def test_states_that_are_wrong(wrong):
    with pytest.raises(StateMismatchError):
        SharedTuner(tuner()).load_state_dict(wrong)


def test_arguments_that_are_wrong():
    with pytest.raises(InvalidArgumentError, match="timeout"):
        Ranks(0)
    shared = SharedTuner(tuner())
    with pytest.raises(InvalidArgumentError, match="weight"):
        shared.mean(1.0, weight=-1)
    with pytest.raises(InvalidArgumentError, match="a positive weight"):
        shared.mean(1.0, weight=0)
    with pytest.raises(InvalidArgumentError, match="metric"):
        shared.mean("low")


# -- on two ranks ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """What each of two ranks wrote, and the folder that they wrote to."""
    folder = tmp_path_factory.mktemp("ranks")
    return (*launched("ranks_program.py", folder, "decide"), folder)


@pytest.mark.slow
def test_two_ranks_decide_alike_and_as_one(two):
    first, second, folder = two
    assert first["seen"] == second["seen"] == by_hand(tuner(seed=0), 2)
    assert first["agreed"] == second["agreed"] == 7.0
    assert first["of_one"] == second["of_one"] == 2.0
    assert first["over"] == second["over"]
    assert "at most 20 rounds" in first["over"]
    # A distributed checkpoint continues, and each rank hears of an error of rank 0.
    assert first["resumed"] == second["resumed"] == first["seen"][ROUNDS // 2 :]
    assert first["broken"] == ["ZeroDivisionError", "no idea"]
    assert second["broken"][0] == "RankError"
    assert "no idea" in second["broken"][1]
    # The state of two ranks continues on one.
    alone = SharedTuner(tuner(seed=0))
    alone.load_state_dict(torch.load(folder / "state0.pt", weights_only=True))
    expected = by_hand(tuner(seed=0), 2)[ROUNDS // 2]
    assert alone.ask().to_dict() == expected[0]


@pytest.mark.slow
def test_ranks_that_disagree_are_told_so(two):
    first, second, _ = two
    assert first["disagreed"] == second["disagreed"]
    assert "{0: 'mean 0', 1: 'ask 1'}" in first["disagreed"]


@pytest.mark.slow
def test_each_rank_goes_on_with_its_own_generators(two):
    *ranks, folder = two
    first, second = (one["generators"] for one in ranks)
    for one in (first, second):
        assert one["drawn"] == one["expected"]
    assert first["expected"] != second["expected"]
    # With another number of ranks all of them stay as they were seeded.
    state = torch.load(folder / "state.pt", weights_only=True)
    assert len(state["generators"]) == 2
    resumed, trained = driver()
    resumed.load_state_dict(state)
    seed(3)
    resumed.start(trained)
    drawn = draws()
    seed(3)
    assert draws() == drawn


def test_a_single_rank_gathers_its_own():
    shared = SharedTuner(tuner())
    (state,) = shared.gather({"values": torch.arange(3), "name": "a"})
    assert state["values"].tolist() == [0, 1, 2]
    assert state["name"] == "a"
    begun, trained = driver()
    begun.start(trained)
    seed(4)
    state = begun.gathered_state_dict()
    expected = draws()
    resumed, trained = driver()
    resumed.load_state_dict(state)
    resumed.start(trained)
    assert draws() == expected


@pytest.mark.slow
@pytest.mark.parametrize("way", ["kill", "hang", "late"])
def test_a_lost_rank_is_reported_and_the_state_is_whole(tmp_path, way):
    first, second = launched("ranks_program.py", tmp_path, way)
    assert second is None
    assert "rank 1" in first["error"]
    assert first["seconds"] < 12  # the timeout is 4, and rank 1 hangs for 14
    resumed = SharedTuner(tuner())
    bc.load(tmp_path / "state.pt", tuner=resumed)
    decisions = [resumed.ask().to_dict() for _ in range(1)]
    expected = tuner()
    for _, loss in first["seen"]:
        decision = expected.ask()
        if decision.query:
            expected.tell(decision, -loss)
    assert decisions == [expected.ask().to_dict()]
