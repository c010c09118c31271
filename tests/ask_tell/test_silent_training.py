"""A training whose optimizer does not go back, or that no rate reaches, earns a warning."""

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR

import botorch_costly as bc
from botorch_costly.integrations import apply
from botorch_costly.integrations.loggers import LoggedTuner
from botorch_costly.rewards import GainReward, GuardedReward
from botorch_costly.rewards.applied_rates import AppliedRates
from botorch_costly.rewards.good_state import GoodState
from tests.cases import slow

SPACE = bc.SearchSpace({"lr": bc.Real(1e-5, 1e-1, log=True), "dropout": bc.Real(0.0, 0.5)})
ROUNDS, STEPS = 40, 20
_UNAPPLIED, _OUTSIDE, _OVER = (
    "are not applied",
    "does not go back with it",
    "this loop does nothing",
)


class Training:
    """A network, its optimizer, and rounds of steps."""

    def __init__(self, kind=torch.optim.AdamW, **options):
        torch.manual_seed(0)
        self.network = nn.Linear(2, 1)
        self.optimizer = kind(self.network.parameters(), lr=1e-2, **options)

    def train(self, steps=STEPS):
        for _ in range(steps):
            self.optimizer.zero_grad()
            loss = (self.network(torch.rand(8, 2)) - 1).square().mean()
            loss.backward()
            self.optimizer.step()
        return loss.item()


def about(caplog, part):
    return sum(part in text for text in caplog.messages)


def apply_by_hand(training, decision):
    for group in training.optimizer.param_groups:
        group["lr"] = decision.config["lr"]


def nothing(training, decision):
    return


def play_session(training, parts, applied=apply_by_hand, around=lambda session: session):
    session = around(bc.Session(SPACE, ROUNDS, *parts, queries=1.0))
    for decision in session:
        applied(training, decision)
        metric = training.train()
        if decision.query:
            session.tell(decision, metric)
    return session


def play_guard(training, guard, applied=apply_by_hand):
    tuner = bc.OnlineTuner(SPACE, 12, query=bc.AlwaysQuery())
    for _ in range(12):
        decision = tuner.ask()
        applied(training, decision)
        tuner.tell(decision, guard(training.train(), decision))


def played(kind, training, parts, applied):
    if kind == "session":
        play_session(training, parts, applied)
    else:
        play_guard(training, GuardedReward.of(GainReward("loss"), *parts), applied)


@pytest.mark.parametrize("kind", ["session", "guard"])
def test_a_training_of_applied_rates_earns_no_warning(kind, caplog):
    training = Training()
    played(kind, training, (training.network, training.optimizer), apply_by_hand)
    assert not any(about(caplog, part) for part in (_UNAPPLIED, _OUTSIDE, _OVER))


@pytest.mark.parametrize("kind", ["session", "guard"])
def test_rates_that_reach_no_optimizer_earn_one_warning(kind, caplog):
    training = Training()
    played(kind, training, (training.network, training.optimizer), nothing)
    assert about(caplog, _UNAPPLIED) == 1


def with_dropout():
    training = Training()
    training.network = nn.Sequential(nn.Dropout(0.1), training.network)
    return training


@pytest.mark.parametrize("kind", ["session", "guard"])
def test_dropout_that_reaches_no_network_earns_one_warning(kind, caplog):
    training = with_dropout()
    played(kind, training, (training.network, training.optimizer), apply_by_hand)
    (message,) = [text for text in caplog.messages if _UNAPPLIED in text]
    assert "values of dropout have left the dropout of the network" in message


@pytest.mark.parametrize("kind", ["session", "guard"])
def test_dropout_that_is_applied_earns_no_warning(kind, caplog):
    training = with_dropout()

    def apply_all(training, decision):
        apply(decision.config, training.optimizer, training.network)

    played(kind, training, (training.network, training.optimizer), apply_all)
    assert about(caplog, _UNAPPLIED) == 0


@pytest.mark.parametrize("kind", ["session", "guard"])
def test_a_scheduler_whose_rate_is_multiplied_earns_no_warning(kind, caplog):
    training = Training()
    scheduler = StepLR(training.optimizer, 10, 0.99)

    def multiply(training, decision):
        config = {"lr": 100 * decision.config["lr"]}
        apply(config, training.optimizer, rates="multipliers")
        if decision.round > 0:
            scheduler.step()

    played(kind, training, (training.network, training.optimizer, scheduler), multiply)
    assert about(caplog, _UNAPPLIED) == 0


def test_rates_on_an_accelerator_are_not_waited_for(caplog):
    """To read a number of the ``meta`` device raises, as reading one of an accelerator waits."""
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)
    optimizer.param_groups[0]["lr"] = torch.empty((), device="meta")
    rates = AppliedRates([optimizer])
    for rate in (0.1, 0.2, 0.3, 0.4):
        rates.note({"lr": rate})
    assert not caplog.records


def test_bare_rounds_and_other_settings_are_not_compared(caplog):
    training = Training()
    parts = training.network, training.optimizer
    guard = GuardedReward.of(GainReward("loss"), *parts)
    for number in range(12):
        guard(training.train(), number)
    space = bc.SearchSpace({"weight_decay": bc.Real(1e-6, 1.0, log=True)})  # perhaps in the loss
    tuner = bc.OnlineTuner(space, 12, query=bc.AlwaysQuery())
    for number in range(12, 24):
        decision = tuner.ask()
        tuner.tell(decision, guard(training.train(), number))
    assert about(caplog, _UNAPPLIED) == 0


@pytest.mark.parametrize("kind", ["session", "guard"])
def test_an_optimizer_that_is_no_part_earns_one_warning(kind, caplog):
    training = Training()
    played(kind, training, (training.network,), apply_by_hand)
    assert about(caplog, _OUTSIDE) == 1


def test_a_good_state_without_the_optimizer_earns_the_warning(caplog):
    training = Training()
    good = GoodState(training.network)
    for step in range(3):
        good.follow(training.train(), step)
    assert about(caplog, _OUTSIDE) == 1


class Wrapper:
    """A part that holds an optimizer, as those of trainers do."""

    def __init__(self, optimizer):
        self.inner = [optimizer]

    def state_dict(self):
        return self.inner[0].state_dict()

    def load_state_dict(self, state):
        self.inner[0].load_state_dict(state)


class Opaque:
    """A part of which nothing shows what it restores."""

    __slots__ = ("load_state_dict", "state_dict")

    def __init__(self, part):
        self.state_dict, self.load_state_dict = part.state_dict, part.load_state_dict


@pytest.mark.parametrize(
    ("training", "parts"),
    [
        (Training(torch.optim.SGD), lambda t: (t.network,)),  # which has no moments
        (Training(), lambda t: (t.network, Wrapper(t.optimizer))),
        slow((Training(), lambda t: (t.network, Opaque(t.optimizer)))),
        (Training(), lambda t: (nn.Linear(2, 2), Training().optimizer)),  # of another network
    ],
    ids=["plain", "wrapped", "opaque", "elsewhere"],
)
def test_an_optimizer_that_goes_back_or_need_not_earns_no_warning(training, parts, caplog):
    play_session(training, parts(training))
    assert about(caplog, _OUTSIDE) == 0


def test_a_scheduler_does_not_stand_for_its_optimizer(caplog):
    training = Training()
    play_session(training, (training.network, StepLR(training.optimizer, 1)))
    assert about(caplog, _OUTSIDE) == 1


@pytest.mark.parametrize("around", [lambda s: s, lambda s: LoggedTuner(s, [])])
def test_a_second_loop_over_a_session_earns_a_warning(around, caplog):
    training = Training()
    session = play_session(training, (training.network, training.optimizer), around=around)
    assert about(caplog, _OVER) == 0
    assert list(session) == []
    assert about(caplog, _OVER) == 1
