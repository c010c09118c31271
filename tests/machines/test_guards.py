"""A guard goes back to a state that was measured well, or leaves the run alone, whatever comes.

The kind of fault: what is kept, told or restored is not what was measured.
"""

import copy
import math
import pickle

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

import botorch_costly as bc
from tests.machines.abuse import (
    BAD_NUMBERS,
    GARBAGE,
    interrupted,
    refused_or_done,
    run_machine,
    through_a_file,
)
from tests.machines.path import Path
from tests.tuners.online.states import same

LOSSES = (
    st.floats(0.01, 10)
    | st.sampled_from([0.0, 1e-30, 1e30, math.nan, math.inf])
    | st.floats(0.5, 0.6)
)


class GuardMachine(RuleBasedStateMachine):
    """A model beside the guard: the finite metric that each path was measured with."""

    @initialize()
    def make(self):
        self.path = Path()
        self.guard = self.guard_of(self.path)
        self.measured = {}
        self.round = 0

    def guard_of(self, path):
        return bc.GuardedReward.of(bc.GainReward("loss"), path)

    @rule()
    def train(self):
        self.path.train(self.round)
        self.round += 1

    def measure(self, loss):
        before, restores = self.path.rounds, self.guard.restores
        self.measured_it(loss, self.guard(loss, round=self.round), before, restores)

    def measured_it(self, loss, gain, before, restores):
        self.round += 1
        if math.isfinite(float(loss)):
            self.measured[before] = loss
        if self.guard.restores > restores:
            assert self.guard.restores == restores + 1
            assert self.path.rounds in self.measured, "nothing was measured of what it went back to"
        else:
            assert self.path.rounds == before
        # Before the first good state a metric that is not finite is a query that failed.
        assert gain is None or math.isfinite(gain) or not self.guard.has_good_state

    @rule(loss=LOSSES)
    def validate(self, loss):
        self.path.train(self.round)
        self.measure(loss)

    @rule()
    def validate_what_was_restored(self):
        if not (self.guard.restores):
            return
        self.measure(self.measured.get(self.path.rounds, 1.0))

    @rule(value=st.sampled_from(BAD_NUMBERS))
    def validate_something_bad(self, value):
        before = self.path.rounds
        with refused_or_done(self.guard):
            self.measure(value)
            return
        assert self.path.rounds == before

    @rule()
    def resume_elsewhere(self):
        path = Path()
        path.load_state_dict(through_a_file(self.path.state_dict()))
        guard = self.guard_of(path)
        guard.load_state_dict(through_a_file(self.guard.state_dict()))
        assert same(guard.state_dict(), self.guard.state_dict())
        self.path, self.guard = path, guard

    @rule(copied=st.sampled_from([copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))]))
    def copy_it_with_its_part(self, copied):
        self.guard, self.path = copied((self.guard, self.path))

    @rule(loss=st.floats(0.01, 10), after=st.integers(1, 40))
    def interrupt_a_validation(self, loss, after):
        before, state = self.path.rounds, copy.deepcopy(self.guard.state_dict())
        restores, said = self.guard.restores, []
        with interrupted(after):
            said.append(self.guard(loss, round=self.round))
        if said:
            self.measured_it(loss, *said, before, restores)
            return
        assert same(self.guard.state_dict(), state)
        assert self.path.rounds in {before, *self.measured}

    @rule(state=st.sampled_from(GARBAGE), damage=st.sampled_from([[], {"a": 1}, "b"]))
    def load_garbage(self, state, damage):
        mine = self.guard.state_dict()
        for bad in (state, *({**mine, part: damage} for part in mine)):
            with refused_or_done(self.guard):
                self.guard.load_state_dict(bad)
                raise AssertionError("a damaged state was taken")


def test_a_guard_takes_any_order_of_calls():
    run_machine(GuardMachine, examples=30, steps=25)


@pytest.mark.slow
def test_a_guard_takes_many_orders_of_calls():
    run_machine(GuardMachine, examples=1000, steps=50)
