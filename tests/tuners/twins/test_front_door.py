"""A session that is made from a space, and a whole run in one call."""

import logging

import pytest
import torch
from torch import nn

import botorch_costly as bc
from botorch_costly import errors
from tests.cases import quick

SPACE = bc.SearchSpace({"lr": bc.Scheduled(1e-5, 1.0), "dropout": bc.Real(0.0, 0.9)})
START = {"lr": 1e-4, "dropout": 0.1}


class Program:
    """A regression whose rounds have some steps; its rate of 1e-4 is far too small."""

    def __init__(self, steps=5):
        torch.manual_seed(0)
        self.network, self.steps = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), steps
        self.optimizer = torch.optim.Adam(self.network.parameters())
        self.inputs = torch.randn(64, 4)
        self.targets = self.inputs.sum(-1, keepdim=True)
        self.rates = []

    @property
    def parts(self):
        return self.network, self.optimizer

    def loss(self):
        return (self.network(self.inputs) - self.targets).square().mean()

    def train_round(self, lr, dropout):
        self.rates.append(lr)
        self.optimizer.param_groups[0]["lr"] = lr
        for _ in range(self.steps):
            self.optimizer.zero_grad()
            self.loss().backward()
            self.optimizer.step()

    def validate(self):
        with torch.no_grad():
            return self.loss().item()


def tuned(program, horizon, **options):
    call = program.train_round, program.validate, SPACE, horizon, *program.parts
    return bc.tune(*call, **{"start": START, **options})


def weights(program):
    return [value.clone() for value in program.network.state_dict().values()]


def equal(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_whole_run_in_one_call_is_better_than_its_start():
    program, alone = Program(), Program()
    session = tuned(program, 120)
    for _ in range(120):
        alone.train_round(**START)
    assert len(session.decisions) == 120
    assert session.best()["lr"] > 10 * START["lr"]
    assert program.validate() < 0.5 * alone.validate()
    assert "Exploring has paid" in str(session.diagnose())
    assert str(session.tuner.given_back) in session.summary()


def test_a_session_plays_what_one_of_a_tuner_plays():
    played = []
    for make in (
        lambda parts: bc.Session(SPACE, 110, *parts, start=START, queries=0.2, seed=3),
        lambda parts: bc.Session.of(
            bc.TwinTuner(SPACE, 110, start=START, queries=0.2, seed=3), *parts
        ),
    ):
        program = Program()
        session = make(program.parts)
        for decision in session:
            program.train_round(**decision.config)
            if decision.query:
                session.tell(decision, program.validate())
        played.append((session.decisions, weights(program)))
    assert played[0][0] == played[1][0]
    assert equal(played[0][1], played[1][1])


@pytest.mark.parametrize(("horizon", "steps"), quick([(99, 5), (300, 1), (240, 2)], (300, 1)))
def test_a_run_that_is_too_short_is_trained_with_its_start_and_says_so(horizon, steps, caplog):
    program, alone = Program(steps), Program(steps)
    with caplog.at_level(logging.WARNING):
        session = tuned(program, horizon)
    for decision in session.decisions:
        alone.train_round(**decision.config)
    said = [r.getMessage() for r in caplog.records if "too few to compare" in r.getMessage()]
    assert len(said) == 1
    assert f"{horizon} rounds of {steps} steps" in said[0]
    assert all(decision.peak == session.best() for decision in session.decisions)
    assert session.best() == pytest.approx(START)
    assert session.tuner.given_back == 0
    assert equal(weights(program), weights(alone))


def test_of_parts_without_an_optimizer_nothing_is_known_of_steps(caplog):
    program = Program(1)
    session = bc.Session(SPACE, 60, program.network, start=START)
    with caplog.at_level(logging.WARNING):
        for decision in session:
            program.train_round(**decision.config)
            if decision.query:
                session.tell(decision, program.validate())
    assert session.tuner.given_back > 0
    (text,) = caplog.messages
    assert "does not go back with it" in text


def test_an_error_leaves_the_state_of_the_incumbent():
    """The run fails within a trial: the parts are those of the best rate so far."""
    program, held = Program(), []

    def train_round(lr, dropout):
        if len(program.rates) == 9:
            raise ZeroDivisionError
        program.train_round(lr, dropout)
        held.append((lr, weights(program)))

    with pytest.raises(ZeroDivisionError):
        bc.tune(train_round, program.validate, SPACE, 120, *program.parts, start=START)
    now = weights(program)
    ends = [number for number, (_, state) in enumerate(held) if equal(state, now)]
    assert ends
    assert held[ends[0]][0] >= max(rate for rate, _ in held[: ends[0]])


def test_an_interrupt_ends_the_run_with_its_incumbent(caplog):
    program = Program()

    def train_round(lr, dropout):
        if len(program.rates) == 30:
            raise KeyboardInterrupt
        program.train_round(lr, dropout)

    with caplog.at_level(logging.WARNING):
        session = bc.tune(train_round, program.validate, SPACE, 120, *program.parts, start=START)
    assert "Interrupted in round 31 of 120" in caplog.text
    assert session.tuner.is_settled
    assert session.best()["lr"] > 10 * START["lr"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"start": {"lr": 7.0, "dropout": 0.1}}, "lr"),
        ({"metric": "f1"}, "metric: Expected one of"),
        ({"queries": 2.0}, "queries"),
        ({"seed": -1}, "seed"),
        ({"device": "gpu"}, "device"),
        ({"keep_best": 1}, "keep_best"),
    ],
)
def test_bad_options_are_named(change, said):
    with pytest.raises(errors.CostlyError, match=said):
        bc.Session(SPACE, 100, nn.Linear(1, 1), **change)


def test_a_tuner_in_place_of_a_space_is_told_the_other_door():
    with pytest.raises(errors.InvalidArgumentError, match=r"space: .*Session\.of"):
        bc.Session(bc.TwinTuner(SPACE, 100), 100, nn.Linear(1, 1))
    with pytest.raises(errors.InvalidArgumentError, match="parts"):
        bc.Session(SPACE, 100)


@pytest.mark.parametrize(
    ("horizon", "steps", "says"),
    quick(
        [(30, 40, True), (60, 40, False), (45, 12, True), (120, 5, False)],
        (45, 12, True),
        (120, 5, False),
    ),
)
def test_rounds_that_are_few_and_long_are_to_be_divided(horizon, steps, says, caplog):
    program = Program(steps=steps)
    with caplog.at_level(logging.WARNING):
        tuned(program, horizon)
    said = [r.getMessage() for r in caplog.records if "few hundred shorter" in r.getMessage()]
    assert len(said) == says
    assert all(f"{horizon} rounds" in message and f"{steps} steps" in message for message in said)


@pytest.mark.parametrize("name", ["train_round", "validate"])
def test_what_is_no_function_is_refused_by_name(name):
    network = torch.nn.Linear(1, 1)
    functions = {"train_round": lambda lr: None, "validate": lambda: 1.0, name: 0.5}
    with pytest.raises(errors.InvalidArgumentError, match=f"{name}: Expected a function"):
        bc.tune(*functions.values(), bc.SearchSpace({"lr": bc.Scheduled(1e-4, 1e-1)}), 300, network)
