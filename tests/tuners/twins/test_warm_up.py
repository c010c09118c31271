"""Runs whose learning rate rises by itself at first: nothing is tried before it has risen."""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.tuners.twins.warm_up import rate_of
from tests.cases import quick

SPACE = bc.SearchSpace({"lr": bc.Scheduled(1e-4, 1.0)})
START, ROUNDS, STEPS = {"lr": 0.01}, 120, 5
TRIAL = "trial"


class Warmed:
    """A network whose rounds multiply the tuned rate by a warm-up of so many steps."""

    def __init__(self, steps=60, falls=0.0, tensor=False):
        torch.manual_seed(0)
        self.network = torch.nn.Linear(4, 1)
        rate = torch.tensor(0.01) if tensor else 0.01
        self.optimizer = torch.optim.Adam(self.network.parameters(), rate, foreach=False)
        self.counted = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda _: 1.0)
        self.steps, self.falls = steps, falls
        self.inputs = torch.randn(64, 4)
        self.targets = self.inputs.sum(-1, keepdim=True)

    @property
    def parts(self):
        return self.network, self.optimizer, self.counted

    def loss(self):
        return (self.network(self.inputs) - self.targets).square().mean()

    def train_round(self, config):
        for _ in range(STEPS):
            trained = self.counted.last_epoch
            warmth = min(1.0, (trained + 1) / self.steps) * math.exp(-self.falls * trained)
            rate = self.optimizer.param_groups[0]["lr"]
            value = config["lr"] * warmth
            if isinstance(rate, torch.Tensor):
                rate.fill_(value)
            else:
                self.optimizer.param_groups[0]["lr"] = value
            self.optimizer.zero_grad()
            self.loss().backward()
            self.optimizer.step()
            self.counted.last_epoch += 1

    def play(self, session, rounds):
        for _ in range(rounds):
            decision = session.ask()
            self.train_round(decision.config)
            if decision.query:
                session.tell(decision, self.loss().item())


def played(steps, **options):
    program = Warmed(steps, **options)
    session = bc.Session(SPACE, ROUNDS, *program.parts, start=START)
    program.play(session, ROUNDS)
    return session


def first_trial(session):
    return next(d.round for d in session.decisions if TRIAL in d.reason)


@pytest.mark.parametrize("tensor", quick([False, True], True))
def test_nothing_is_tried_before_the_rate_has_risen(tensor):
    session = played(60, tensor=tensor)
    assert 60 / STEPS <= first_trial(session) < 60 / STEPS + 8
    assert session.best()["lr"] > 2 * START["lr"]


def test_a_rate_that_rises_for_long_is_searched_after_a_fifth_of_the_run():
    session = played(ROUNDS * STEPS)
    assert 0.2 * ROUNDS <= first_trial(session) < 0.2 * ROUNDS + 8


@pytest.mark.parametrize("falls", quick([0.0, 1e-3], 0.0))
def test_a_rate_that_stands_or_falls_is_searched_at_once(falls):
    assert first_trial(played(1, falls=falls)) == first_trial(played(1)) < 6


@pytest.mark.parametrize("saved", quick([1, 2, 5, 13], 2, 13))
def test_a_run_that_is_saved_while_it_waits_goes_on_identically(saved, tmp_path):
    whole = played(60)
    program = Warmed(60)
    session = bc.Session(SPACE, ROUNDS, *program.parts, start=START)
    program.play(session, saved)
    parts = {"network": program.network, "optimizer": program.optimizer}
    bc.save(tmp_path / "run.pt", session=session, **parts)
    trained = program.counted.last_epoch
    other = Warmed(60)
    again = bc.Session(SPACE, ROUNDS, *other.parts, start=START)
    parts = {"network": other.network, "optimizer": other.optimizer}
    bc.load(tmp_path / "run.pt", session=again, **parts)
    other.counted.last_epoch = trained
    other.play(again, ROUNDS - saved)
    assert again.decisions == whole.decisions


def test_a_run_that_waits_can_be_finished():
    program = Warmed(60)
    session = bc.Session(SPACE, ROUNDS, *program.parts, start=START)
    program.play(session, 4)
    assert session.tuner.is_settled
    assert session.finish() == pytest.approx(START)
    program.play(session, ROUNDS - 4)
    assert not any(TRIAL in decision.reason for decision in session.decisions)


def test_without_an_optimizer_nothing_is_known():
    assert math.isnan(rate_of([torch.nn.Linear(1, 1)]))
    program = Warmed(60)
    session = bc.Session(SPACE, ROUNDS, program.network, start=START)
    program.play(session, ROUNDS)
    assert first_trial(session) < 6


def test_strong_strengths_are_compared_after_a_warm_up():
    """Kind: a mark of the run passes before anything was compared."""
    space = bc.SearchSpace({"lr": bc.Scheduled(1e-4, 1.0), "dropout": bc.Real(0.0, 0.9)})
    program = Warmed(steps=60)
    tuner = bc.TwinTuner(space, ROUNDS, start={**START, "dropout": 0.8})
    program.play(bc.Session.of(tuner, *program.parts), 40)
    first = next(decision for decision in tuner.decisions if TRIAL in decision.reason)
    assert first.round >= 60 / STEPS
    assert first.config["dropout"] == pytest.approx(0.09)
