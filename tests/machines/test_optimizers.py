"""Every optimizer under any order of calls: named errors alone, nothing lost, identical continuation."""

import copy
import math
from contextlib import suppress

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from botorch_costly.errors import AlreadyToldError, HorizonExceededError
from tests.cases import quick
from tests.machines.abuse import (
    BAD_NUMBERS,
    GARBAGE,
    interrupted,
    refused_or_done,
    run_machine,
    through_a_file,
)
from tests.registry.optimizers import BY_DEFAULT, OPTIMIZERS
from tests.tuners.online.states import same

WHICH = st.integers(0, 10**6)  # of several suggestions, modulo their number
NUMBERS = st.floats(-3, 3) | st.sampled_from([0.0, 1e-12, 1e3, -1e6, 1e9])


class OptimizerMachine(RuleBasedStateMachine):
    """A model of the ledger beside the optimizer: which numbers were asked for, told and withdrawn."""

    name, case = "RandomTuner", OPTIMIZERS["RandomTuner"]

    @initialize(seed=st.integers(0, 2**31))
    def make(self, seed):
        self.seed = seed
        self.optimizer = self.case.make(seed)
        self.asked, self.told, self.count = {}, set(), 0

    @property
    def may_run_out(self):
        """Whether all that there is may have been asked for before the horizon."""
        return " of candidates" in self.name or self.name == "CurveOptimizer as published"

    def another(self):
        """Return an optimizer of equal options that has loaded the state from a file."""
        other = self.case.make(self.seed)
        other.load_state_dict(through_a_file(self.optimizer.state_dict()))
        return other

    def enter(self, suggestion):
        assert suggestion.id == self.count
        floats = [value for value in suggestion.config.values() if isinstance(value, float)]
        assert all(math.isfinite(value) for value in floats)
        self.optimizer.space.encode(suggestion.config)  # raises outside the space
        self.asked[suggestion.id] = suggestion
        self.count += 1

    def one_of(self, which, numbers):
        numbers = sorted(numbers)
        return self.asked[numbers[which % len(numbers)]]

    @rule()
    def ask(self):
        try:
            suggestion = self.optimizer.ask()
        except HorizonExceededError:
            assert self.count == self.case.horizon or self.may_run_out
        else:
            self.enter(suggestion)

    @rule(which=WHICH, number=NUMBERS)
    def tell(self, which, number):
        if not (set(self.asked) - self.told):
            return
        suggestion = self.one_of(which, set(self.asked) - self.told)
        self.case.tell(self.optimizer, suggestion, number)
        self.told.add(suggestion.id)

    @rule(which=WHICH, value=st.sampled_from(BAD_NUMBERS))
    def tell_something_bad(self, which, value):
        if not (set(self.asked) - self.told):
            return
        suggestion = self.one_of(which, set(self.asked) - self.told)
        with refused_or_done(self.optimizer):
            self.case.tell(self.optimizer, suggestion, value)
            self.told.add(suggestion.id)

    @rule(which=WHICH, number=NUMBERS)
    def tell_again(self, which, number):
        if not (self.told):
            return
        suggestion = self.one_of(which, self.told)
        with refused_or_done(self.optimizer), pytest.raises(AlreadyToldError):
            self.case.tell(self.optimizer, suggestion, number)

    @rule()
    def resume_elsewhere(self):
        if not (self.count < self.case.horizon):
            return
        other = self.another()
        try:
            ours = self.optimizer.ask()
        except HorizonExceededError:
            assert self.may_run_out
            with pytest.raises(HorizonExceededError):
                other.ask()
            return
        theirs = other.ask()
        assert ours == theirs
        assert same(self.optimizer.state_dict(), other.state_dict())
        self.optimizer = other
        self.enter(theirs)

    @rule(after=st.integers(1, 3000))
    def interrupt_an_ask(self, after):
        before, suggestion = copy.deepcopy(self.optimizer.state_dict()), None
        with interrupted(after), suppress(HorizonExceededError):
            suggestion = self.optimizer.ask()
        if suggestion is None:
            assert same(self.optimizer.state_dict(), before)
        else:
            self.enter(suggestion)

    @rule(which=WHICH, after=st.integers(1, 60), number=NUMBERS)
    def interrupt_a_tell(self, which, after, number):
        if not (set(self.asked) - self.told):
            return
        suggestion = self.one_of(which, set(self.asked) - self.told)
        before, other = copy.deepcopy(self.optimizer.state_dict()), self.another()
        self.case.tell(other, suggestion, number)
        with interrupted(after):
            self.case.tell(self.optimizer, suggestion, number)
        if same(self.optimizer.state_dict(), other.state_dict()):
            self.told.add(suggestion.id)  # interrupted once all was recorded, if at all
        else:
            assert same(self.optimizer.state_dict(), before)

    @rule(state=st.sampled_from(GARBAGE), damage=st.sampled_from([None, [], {"a": 1}, "b", 0.5]))
    def load_garbage(self, state, damage):
        mine = self.optimizer.state_dict()
        damaged = [{**mine, part: damage} for part in mine]
        for bad in (state, *damaged):
            with refused_or_done(self.optimizer):
                self.optimizer.load_state_dict(bad)
                assert same(bad, mine), "a damaged state was taken"

    @rule()
    def read(self):
        before = copy.deepcopy(self.optimizer.state_dict())
        for name in ("summary", "best", "diagnose", "__repr__"):
            reader = getattr(self.optimizer, name, None)
            if reader is not None:
                with refused_or_done(self.optimizer):
                    str(reader())
        assert same(self.optimizer.state_dict(), before)

    @invariant()
    def nothing_is_lost(self):
        rows = self.optimizer.history
        assert [row["round"] for row in rows] == sorted(self.asked)
        assert {one.round for one in self.optimizer.observations} == self.told
        asked_to_pay = {number for number, one in self.asked.items() if one.query}
        assert self.optimizer.queries == len(asked_to_pay | self.told)


def machine_of(name):
    return type(name, (OptimizerMachine,), {"case": OPTIMIZERS[name], "name": name})


# Their choices have states of their own: which of a list is left.
FROM_A_LIST = ("CurveOptimizer of candidates", "SubsetOptimizer of candidates")


@pytest.mark.parametrize("name", quick(OPTIMIZERS, *BY_DEFAULT, *FROM_A_LIST))
def test_an_optimizer_takes_any_order_of_calls(name):
    run_machine(machine_of(name), examples=2, steps=15)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_takes_many_orders_of_calls(name):
    run_machine(machine_of(name), examples=40, steps=40)
