"""The kind: a damaged state, or a round cut off, with which a driver goes on as if it were whole."""

import copy
from contextlib import nullcontext

import pytest
import torch

from botorch_costly.errors import StateMismatchError
from botorch_costly.integrations import RoundLength
from botorch_costly.integrations.driver import Driver
from botorch_costly.integrations.rounds import RoundClock
from botorch_costly.integrations.training import Trained, TrainerOptions
from tests.integrations.test_driver_fits import STEPS, Fit, driver_of, tuner


def interrupts(*_, **__):
    raise KeyboardInterrupt


DAMAGED = {
    "steps": ("clock", {"steps": "b"}),
    "planned": ("clock", {"planned": []}),
    "seconds": ("clock", {"step_seconds": "b"}),
    "asked": ("shared", {"asked": "b"}),
    "delivered": ("shared", {"delivered": None}),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_part_of_a_state_is_refused(damage):
    """The kind: a part of a saved state that is read only later, and fails there or is believed."""
    state = Fit(driver_of(tuner())).train(3).driver.state_dict()
    part, changes = DAMAGED[damage]
    driver = driver_of(tuner())
    driver.load_state_dict({**state, part: {**state[part], **changes}})
    with pytest.raises(StateMismatchError):
        Fit(driver)
    assert driver.tuner.decisions == ()


@pytest.mark.parametrize("said", [True, False], ids=["said", "not said"])
@pytest.mark.parametrize("wrong", [{"rates": "multipliers"}, {"length": RoundLength(epochs=2)}])
def test_a_state_is_not_read_in_another_unit(wrong, said):
    """The kind: a number of a state, taken for one of another unit. Older states do not say which."""
    state = Fit(driver_of(tuner())).train(3).driver.state_dict()
    if not said:
        del state["rates"], state["clock"]["unit"]
    driver = Driver(tuner(), TrainerOptions(**{"length": RoundLength(steps=STEPS), **wrong}))
    driver.load_state_dict(state)
    with pytest.raises(StateMismatchError, match=next(iter(wrong))) if said else nullcontext():
        Fit(driver)
    assert len(driver.tuner.decisions) == 2 * (not said)


@pytest.mark.parametrize("rounds", [0, 1])
@pytest.mark.parametrize("resumed", [True, False])
def test_a_decision_that_was_not_put_into_effect_is_the_next_one_again(
    rounds, resumed, monkeypatch
):
    """The kind: a decision that the tuner has made and no round of training follows."""
    fit = Fit(driver_of(tuner())).train(rounds * STEPS)
    monkeypatch.setattr(fit.driver, "_apply", interrupts)
    with pytest.raises(KeyboardInterrupt):
        fit.driver.before_step()
    monkeypatch.undo()
    if resumed:
        state, weights = fit.driver.state_dict(), fit.optimizer.state_dict()
        again = driver_of(tuner())
        again.load_state_dict(copy.deepcopy(state))
        fit = Fit(again)
        fit.optimizer.load_state_dict(weights)
    fit.train(STEPS)
    assert [one.round for one in fit.driver.tuner.decisions] == list(range(rounds + 1))
    assert len(fit.driver.tuner.observations) == rounds + 1
    assert fit.rate == fit.driver.tuner.decisions[-1].config["lr"]


def test_a_round_that_ends_is_due_or_runs_on_if_it_is_interrupted(monkeypatch):
    """The kind: a query that is forgotten between the end of its round and the trainer."""
    fit = Fit(driver_of(tuner()))
    fit.train(STEPS - 1)
    fit.driver.before_step()
    monkeypatch.setattr(RoundClock, "step", interrupts)
    with pytest.raises(KeyboardInterrupt):
        fit.driver.after_step()
    monkeypatch.undo()
    assert fit.driver.after_step()


def test_the_global_generators_go_on_where_the_state_has_them_unless_they_have_been_there():
    fit = Fit(driver_of(tuner())).train(STEPS)
    state = copy.deepcopy(fit.driver.state_dict())
    drawn = torch.rand(3)
    for generators in (True, False):
        driver = driver_of(tuner())
        driver.load_state_dict(state)
        new = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Dropout(0.5))
        torch.manual_seed(9)
        driver.start(Trained(new, torch.optim.SGD(new.parameters(), lr=0.1)), generators=generators)
        assert torch.equal(torch.rand(3), drawn) == generators
