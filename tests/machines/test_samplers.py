"""A study of Optuna under any order of calls: no trial is lost, and the storage says all that is known.

The kind of fault: what a sampler remembers beside the study, so that a new one goes on otherwise, and
what a trial came to that its sampler does not expect.
"""

import math

import optuna
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

import botorch_costly as bc
from botorch_costly.integrations.optuna import CurveSampler, SubsetSampler, TransferSampler
from tests.machines.abuse import run_machine

X = {"x": FloatDistribution(0.0, 1.0), "c": CategoricalDistribution(["a", "b", "z"])}
WIDE = {**X, "x": FloatDistribution(-1.0, 3.0)}
# The length of a training stays: a sampler refuses a study whose trials have several.
SPACES = {
    "transfer": [X, {**X, "more": FloatDistribution(1e-3, 1.0, log=True)}, {"x": X["x"]}],
    "curves": [{**X, "epochs": IntDistribution(1, 4)}, {**WIDE, "epochs": IntDistribution(1, 4)}],
    "subsets": [
        {**X, "rows": IntDistribution(10, 1000)},
        {"rows": IntDistribution(10, 1000), **WIDE},
    ],
}
ROUGH = bc.Sampling(draws=2, first_steps=8, steps=8, points=5, candidates=20, first=3)
VALUES = st.floats(-3, 3) | st.sampled_from([0.0, 1e9, -1e9, math.inf, math.nan])
SEEDS = st.integers(0, 3)


def earlier_study():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for number in range(4):
        trial = study.ask(X)
        study.tell(trial, number * 0.1 + trial.params["x"])
    return study


SAMPLERS = {
    "transfer": lambda seed: TransferSampler([earlier_study()], warm_start=1, seed=seed),
    "curves": lambda seed: CurveSampler("epochs", seed=seed),
    "subsets": lambda seed: SubsetSampler("rows", cost="cost", sampling=ROUGH, seed=seed),
}


class SamplerMachine(RuleBasedStateMachine):
    """A model beside the study: the trials that were begun, and what they were told."""

    kind, longest = "transfer", 7

    @initialize(seed=SEEDS, direction=st.sampled_from(["minimize", "maximize"]))
    def make(self, seed, direction):
        self.seed = seed
        self.study = optuna.create_study(sampler=SAMPLERS[self.kind](seed), direction=direction)
        self.space = SPACES[self.kind][0]
        self.running, self.ended, self.waiting = [], {}, 0

    def is_full(self):
        return len(self.study.trials) >= self.longest

    def begun(self):
        trial = self.study.ask()
        for name, distribution in self.space.items():
            value = trial._suggest(name, distribution)
            assert distribution._contains(distribution.to_internal_repr(value))
            assert not isinstance(value, float) or math.isfinite(value)
        self.waiting = max(self.waiting - 1, 0)
        return trial

    @rule()
    def ask(self):
        if not self.is_full():
            self.running.append(self.begun())

    @rule(
        which=st.integers(0, 99), value=VALUES, how=st.sampled_from(["ends", "fails", "is pruned"])
    )
    def tell(self, which, value, how):
        if not self.running:
            return
        trial = self.running.pop(which % len(self.running))
        if how != "fails":
            for step in range(trial.params.get("epochs", 0)):
                trial.report(value, step)
        trial.set_user_attr("cost", 1.0 + trial.number)
        states = {"fails": "FAIL", "is pruned": "PRUNED", "ends": "COMPLETE"}
        state = states["fails" if how == "ends" and math.isnan(value) else how]
        self.study.tell(
            trial, value if state == "COMPLETE" else None, state=optuna.trial.TrialState[state]
        )
        self.ended[trial.number] = state

    @rule(value=VALUES)
    def ask_and_tell(self, value):
        if not self.is_full():
            self.running.append(self.begun())
            self.tell(-1, value, "ends")

    @rule(x=st.floats(0, 1), part=st.booleans())
    def enqueue(self, x, part):
        if self.is_full():
            return
        whole = {"c": "b", "epochs": 2, "rows": 20}
        others = {} if part else {n: v for n, v in whole.items() if n in self.space}
        self.study.enqueue_trial({"x": x, **others})
        self.waiting += 1
        if self.waiting == 1:
            trial = self.begun()
            assert trial.params["x"] == x
            self.running.append(trial)

    @rule(which=st.integers(0, 2))
    def change_the_space(self, which):
        self.space = SPACES[self.kind][which % len(SPACES[self.kind])]

    @rule()
    def sample_anew(self):
        """A new sampler on the same study begins the next trial as one that it is the twin of."""
        if self.is_full() or self.waiting:
            return
        suggested = []
        for _ in range(2):
            twin = SAMPLERS[self.kind](self.seed)
            copied = optuna.create_study(sampler=twin, direction=self.study.direction)
            for trial in self.study.get_trials(deepcopy=True):
                copied.add_trial(trial)
            trial = copied.ask()
            suggested.append({n: trial._suggest(n, d) for n, d in self.space.items()})
        assert suggested[0] == suggested[1]
        self.study.sampler = SAMPLERS[self.kind](self.seed)
        self.running.append(self.begun())

    @rule()
    def read_the_best(self):
        best = self.study.sampler.best_params(self.study)
        assert best is None or set(best) <= {name for space in SPACES[self.kind] for name in space}

    @invariant()
    def no_trial_is_lost(self):
        trials = self.study.get_trials(deepcopy=False)
        assert {t.number: t.state.name for t in trials if t.state.is_finished()} == self.ended
        begun = [t.number for t in trials if t.state.name == "RUNNING"]
        assert begun == sorted(trial.number for trial in self.running)


def machine_of(kind, longest):
    return type(kind, (SamplerMachine,), {"kind": kind, "longest": longest})


@pytest.mark.parametrize("kind", SAMPLERS)
def test_a_sampler_takes_any_order_of_calls(kind):
    run_machine(machine_of(kind, 5), examples=2, steps=12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SAMPLERS)
def test_a_sampler_takes_many_orders_of_calls(kind):
    run_machine(machine_of(kind, 10), examples=50, steps=30)
