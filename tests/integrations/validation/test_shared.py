"""One validation for all ranks: the same decisions on each, without a message at every step."""

import math

import pytest
import torch.distributed as dist

from botorch_costly.errors import InvalidArgumentError, StateMismatchError
from botorch_costly.integrations.validation import SharedValidation
from tests.integrations.launching import launched
from tests.integrations.validation.readings import readings, validation
from tests.integrations.validation.shared_program import STEPS, loss_of

if not dist.is_gloo_available():
    pytest.skip("this build of torch has no gloo", allow_module_level=True)


# -- on one rank -----------------------------------------------------------------------------------


def test_a_single_rank_decides_as_the_validation_itself():
    shared, alone = SharedValidation(validation()), validation()
    for step in range(200):
        due = alone.due(step, train_loss=loss_of(step, 0), last=step == 199)
        assert shared.due(step, train_loss=loss_of(step, 0), last=step == 199) == due
        assert shared.reason == alone.reason
        assert shared.is_due == due
        if due:
            alone.tell(loss_of(step, 0))
            assert shared.tell(loss_of(step, 0), weight=7) == loss_of(step, 0)
        assert (shared.is_best, shared.best) == (alone.is_best, alone.best)
        assert (shared.has_diverged, shared.should_stop) == (False, False)
    assert readings(shared.validation) == readings(alone)
    assert (shared.step, shared.read) == (199, 199)


def test_no_metric_at_all_is_a_failed_reading():
    shared = SharedValidation(validation())
    shared.due(0, last=True)
    assert shared.tell(None) is None
    assert shared.has_diverged
    shared.due(1, last=True)
    assert shared.tell(0.5, weight=0) is None
    assert shared.validation.counts["failed"] == 2


def test_a_state_continues_and_keeps_a_reading_that_is_due():
    shared, resumed = SharedValidation(validation()), SharedValidation(validation())
    assert shared.due(7, last=True)
    resumed.load_state_dict(shared.state_dict())
    assert (resumed.is_due, resumed.step, resumed.read) == (True, 7, -1)
    resumed.tell(0.5)
    assert readings(resumed.validation) == [[7, 0.5]]


def test_states_that_are_wrong_change_nothing():
    shared = SharedValidation(validation())
    shared.due(3, last=True)
    shared.tell(0.5)
    state = shared.state_dict()
    other = SharedValidation(validation(0.5)).state_dict()
    wrong = [None, {}, {**state, "validation": None}, {**state, "step": "3"}, other]
    for damaged in wrong:
        with pytest.raises(StateMismatchError):
            shared.load_state_dict(damaged)
    assert readings(shared.validation) == [[3, 0.5]]
    shared.load_state_dict(other, ["overhead"])
    assert readings(shared.validation) == []


def test_arguments_that_are_wrong():
    with pytest.raises(InvalidArgumentError, match="a Validation"):
        SharedValidation(None)
    shared = SharedValidation(validation())
    with pytest.raises(InvalidArgumentError, match="a step before"):
        shared.tell(0.5)
    shared.due(0, last=True)
    for wrong in ({"value": "low"}, {"value": 0.5, "weight": -1}):
        with pytest.raises(InvalidArgumentError):
            shared.tell(**wrong)


# -- on two ranks ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Results of two ranks."""
    return launched("validation/shared_program.py", tmp_path_factory.mktemp("ranks"), "loop")


def test_two_ranks_read_the_same_steps_with_one_mean_and_one_verdict(two):
    first, second = two
    assert first["seen"] == second["seen"]
    steps = [step for step, *_ in first["seen"]]
    assert steps[-1] == STEPS - 1
    assert 301 in steps
    for step, mean, *_ in first["seen"]:
        expected = loss_of(step, 0) if step == 301 else loss_of(step, 0) + 0.1 * 3 / 4
        assert mean == pytest.approx(expected)
    assert first["readings"] == len(steps) <= 0.2 * STEPS
    assert second["readings"] == 0


def test_ranks_do_not_meet_at_every_step(two):
    assert two[0]["meetings"] == two[1]["meetings"] < 0.8 * STEPS


def test_a_resumed_run_reads_the_same_steps(two):
    first, second = two
    assert first["again"] == second["again"]
    assert abs(len(first["again"]) - sum(step >= STEPS // 2 for step, *_ in first["seen"])) <= 1


def test_a_spike_that_rank_0_sees_is_read_on_all_ranks(two):
    first, second = two
    assert first["spiked"] == second["spiked"]
    assert any(450 <= step <= 480 for step in first["spiked"])


def test_two_ranks_read_the_whole_set(two):
    for result in two:
        assert "several ranks read the whole set" in result["refused"]


def test_ranks_at_different_steps_are_an_error_on_all_of_them(two):
    for result in two:
        assert "validation 3" in result["error"]
        assert "validation 4" in result["error"]


@pytest.mark.filterwarnings("ignore")
def test_two_ranks_of_a_trainer_go_back_together(tmp_path):
    pytest.importorskip("lightning.pytorch", reason="needs the extra botorch_costly[lightning]")
    first, second = launched("validation/shared_program.py", tmp_path, "lightning")
    assert first["weights"] == second["weights"]
    assert first["restores"] == second["restores"] == 1
    assert first["best"] == second["best"]
    assert all(math.isfinite(value) for value in first["weights"])
    means = [(a + b) / 2 for a, b in zip(first["losses"], second["losses"], strict=True)]
    read = [value for _, value in first["read"]]
    assert read[-1] == pytest.approx(means[-1], rel=1e-5)
    assert second["read"] == []  # its own validation is not asked
