"""Runs that have not begun to learn, as one that died in its first rounds."""

import pytest

import botorch_costly as bc
from tests.tuners.twins.running import GOOD, RATE, Run, alone, play

HORIZON = 200


class Mortal(Run):
    """A run that learns nothing in its first rounds, and dies of ten times the good rate."""

    def __init__(self, warm_up, **options):
        super().__init__(**options)
        self.warm_up, self.age, self.alive = warm_up, 0, True

    def train(self, config):
        self.alive &= config["lr"] < 5 * GOOD
        self.age += 1
        before = self.progress
        super().train(config)
        if not self.alive or self.age <= self.warm_up:
            self.progress = before

    def state_dict(self):
        return {**super().state_dict(), "age": self.age, "alive": self.alive}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.age, self.alive = state["age"], state["alive"]


@pytest.mark.parametrize("noise", [0.0, 0.003])
def test_a_run_that_died_in_its_first_rounds_begins_anew(noise):
    start, run = {"lr": 10 * GOOD}, Mortal(9, noise=noise)
    tuner = bc.TwinTuner(RATE, HORIZON, start=start)
    play(tuner, run)
    assert run.alive
    assert run.level > 0.6 * alone({"lr": GOOD}, HORIZON).level
    assert max(decision.trained for decision in tuner.decisions) < HORIZON


def test_a_run_that_begins_to_learn_in_time_is_not_begun_anew():
    run = Mortal(5)
    tuner = bc.TwinTuner(RATE, HORIZON, start={"lr": GOOD})
    play(tuner, run)
    assert tuner.given_back < 0.35 * HORIZON
    assert not any(d.trained == 0 for d in tuner.decisions[60:])


def test_a_run_that_never_learns_begins_anew_twice_at_most():
    run = Mortal(HORIZON)
    tuner = bc.TwinTuner(RATE, HORIZON, start={"lr": GOOD})
    play(tuner, run)
    firsts = [d for d in tuner.decisions if d.trained == 0 and "incumbent" in d.reason]
    assert len(tuner.decisions) == HORIZON
    assert 2 <= len(firsts) <= 3
