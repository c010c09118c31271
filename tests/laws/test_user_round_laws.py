"""What the rounds are that a user enters or cancels, of every optimizer that is asked and told."""

import copy
import dataclasses
import math
import pickle

import pytest

from botorch_costly import errors
from tests.cases import quick
from tests.laws.optimizer_runs import after, saved_run, step, through_a_file
from tests.registry.optimizers import BY_DEFAULT, OPTIMIZERS
from tests.tuners.online.states import same

# Those whose rounds do not depend on each other: a plan and a population refuse a round of the user's.
FREE = [name for name in OPTIMIZERS if not name.startswith(("Twin", "Population"))]
FREE_BY_DEFAULT = [name for name in FREE if name in BY_DEFAULT]
BOUND = [name for name in OPTIMIZERS if name not in FREE]


@pytest.mark.parametrize("name", quick(FREE, *FREE_BY_DEFAULT))
def test_a_cancelled_suggestion_leaves_its_number_alone(name):
    """Nothing else of it is left, in states as well; later numbers and tells go on."""
    case = OPTIMIZERS[name]
    optimizer = after(case, 3)
    rows = optimizer.history
    first, second = optimizer.ask(), optimizer.ask()
    optimizer.cancel(pickle.loads(pickle.dumps(first)))
    optimizer.cancel(second)
    assert optimizer.history == rows
    assert optimizer.pending == ()
    before = copy.deepcopy(optimizer.state_dict())
    with pytest.raises(errors.UnknownDecisionError):
        optimizer.cancel(first)
    finished = {outcome.round for outcome in optimizer.observations}
    for decision in [decision for decision in optimizer.decisions if decision.round in finished]:
        with pytest.raises(errors.AlreadyToldError):
            optimizer.cancel(decision)
    assert same(optimizer.state_dict(), before)
    again = case.make(0)
    again.load_state_dict(through_a_file(optimizer.state_dict()))
    assert step(case, optimizer) == step(case, again)
    assert optimizer.decisions[-1].round == 5


def enqueued(optimizer, suggestion):
    """Enter the setting of another optimizer's suggestion."""
    if optimizer.tells != "curve":
        return optimizer.enqueue(suggestion.config, suggestion.fidelity or None)
    training = suggestion.training if suggestion.training != suggestion.round else None
    return optimizer.enqueue(suggestion.config, suggestion.until, training=training)


@pytest.mark.parametrize("name", quick(FREE, *FREE_BY_DEFAULT))
def test_an_enqueued_setting_is_as_if_it_had_been_asked_for(name):
    """Another program's evaluations, entered and told, are in the history, and the run goes on."""
    case = OPTIMIZERS[name]
    asked, entering = case.make(0), case.make(0)
    for _ in range(5):
        suggestion = asked.ask()
        entered = enqueued(entering, suggestion)
        assert entered in entering.pending
        case.tell(asked, suggestion, math.sin(suggestion.id))
        case.tell(entering, entered, math.sin(suggestion.id))
    for ours, theirs in zip(asked.history, entering.history, strict=True):
        unlike = {key for key in ours if ours[key] != theirs[key]}
        assert unlike <= {"reason", "share", "weights", "query", "confidence", "interval"}
    before = copy.deepcopy(entering.state_dict())
    with pytest.raises(errors.InvalidConfigError):
        enqueued(entering, dataclasses.replace(suggestion, config={"lr": 5.0}))
    assert same(entering.state_dict(), before)
    again = case.make(0)
    again.load_state_dict(through_a_file(before))
    assert step(case, entering) == step(case, again)


@pytest.mark.parametrize("name", quick(FREE, *FREE_BY_DEFAULT))
def test_of_a_cancelled_setting_of_the_user_nothing_is_left(name):
    """Not in later suggestions or states, whichever setting it was; a bandit's arm has no probability."""
    case = OPTIMIZERS[name]
    runs = []
    for number in (0, 1):
        optimizer = after(case, 7)
        setting = saved_run(case)[0][number]
        is_curve = optimizer.tells == "curve"
        mine = optimizer.enqueue(setting.config, 1) if is_curve else enqueued(optimizer, setting)
        pickle.dumps(optimizer.state_dict())
        optimizer.cancel(mine)
        again = case.make(0)
        again.load_state_dict(through_a_file(optimizer.state_dict()))
        runs += [optimizer, again]
    for number in range(4):
        if number:
            first, *others = [step(case, optimizer) for optimizer in runs]
            assert others == [first] * 3
        states = [optimizer.state_dict() for optimizer in runs]
        assert all(same(states[0], state) for state in states[1:])


@pytest.mark.parametrize("name", quick(BOUND, *[name for name in BOUND if name in BY_DEFAULT]))
def test_a_plan_refuses_rounds_of_the_user_and_is_unchanged(name):
    case = OPTIMIZERS[name]
    optimizer = after(case, 3)
    suggestion = optimizer.ask()
    before = copy.deepcopy(optimizer.state_dict())
    for refused in (
        lambda: optimizer.enqueue(suggestion.config),
        lambda: optimizer.cancel(suggestion),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=r"Expected .*; Received"):
            refused()
        assert same(optimizer.state_dict(), before)
    step(case, optimizer)
