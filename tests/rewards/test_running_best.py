"""The best value so far, told in place of the metric, earns one warning; what converges earns none."""

import itertools
import math
import random

import pytest
import torch

import botorch_costly as bc
from botorch_costly.rewards import GainReward, running_best
from botorch_costly.rewards.running_best import RunningBest
from botorch_costly.tuners.twins.session import Session

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True)})
SAID = "never get worse, and"
SEEDS = range(30)


def noisy(seed, count=60, noise=0.05):
    """Losses of a training with noise, as they were measured."""
    draws = random.Random(seed)
    return [(0.2 + math.exp(-k / 15)) * math.exp(draws.gauss(0, noise)) for k in range(count)]


def best_so_far(values, better=min):
    return list(itertools.accumulate(values, better))


def accuracies(seed, examples, count=60, slow=15.0):
    """Accuracies on a number of examples, as they were measured."""
    draws = random.Random(seed)
    shares = [0.9 - 0.8 * math.exp(-k / slow) for k in range(count)]
    return [
        sum(draws.random() < share for _ in range(examples)) / examples
        if examples <= 500
        else round(examples * min(1, share + draws.gauss(0, 1) * 0.4 / examples**0.5)) / examples
        for share in shares
    ]


def watched(values, kind="loss"):
    best = RunningBest(kind)
    for value in values:
        best.watch(value)


def said(caplog):
    return [text for text in caplog.messages if SAID in text]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_smallest_loss_so_far(seed, caplog):
    watched(best_so_far(noisy(seed)))
    (text,) = said(caplog)
    assert "as the best value so far is, or one that was not measured anew" in text


def test_the_largest_accuracy_so_far(caplog):
    for seed in SEEDS:
        watched(best_so_far(accuracies(seed, 5000), max), "accuracy")
    assert len(said(caplog)) > 25


def test_losses_as_they_were_measured(caplog):
    for seed, noise in itertools.product(SEEDS, (0.0, 1e-6, 1e-3, 0.05, 0.3)):
        watched(noisy(seed, 300, noise))
        watched(map(float, torch.tensor(noisy(seed, 300, noise))))
    assert not said(caplog)


@pytest.mark.parametrize("digits", [1, 2, 3, 4])
def test_rounded_losses_of_a_smooth_training(digits, caplog):
    """They are often equal, and never get worse."""
    for rate, level in itertools.product((5, 15, 50, 200), (0.2, 0.9, 3.0, 30.0)):
        watched([round(level * (0.2 + math.exp(-k / rate)), digits) for k in range(400)])
    assert not said(caplog)


def test_accuracies_of_a_smooth_training(caplog):
    for examples, slow in itertools.product((50, 100, 360, 1000, 5000, 10_000), (5, 15, 50, 200)):
        shares = [0.9 - 0.8 * math.exp(-k / slow) for k in range(400)]
        watched([round(examples * share) / examples for share in shares], "accuracy")
    assert not said(caplog)


def test_accuracies_as_they_were_measured(caplog):
    for seed, examples in itertools.product(SEEDS, (20, 100, 500, 5000)):
        watched(accuracies(seed, examples), "accuracy")
    assert not said(caplog)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_full_batch_descent_until_it_stands_still(dtype, caplog):
    """Its loss never rises, and repeats where it ends."""
    scales = torch.logspace(0, -3, 5)
    for rate in (0.05, 0.3, 0.9):
        place, losses = torch.ones(5), []
        for _ in range(2000):
            losses.append(float((0.3 + (scales * place.square()).sum()).to(dtype)))
            place -= rate * scales * place
        watched(losses)
    assert not said(caplog)


def test_constants_and_steps_without_repeats(caplog):
    watched([0.5] * 100)
    watched([1 / (1 + k) for k in range(100)])
    watched([1.0] * 50 + [0.5] * 50)  # a rate that falls once
    assert not said(caplog)


def test_many_metrics_are_judged_at_once(monkeypatch):
    """A search for the number of examples takes time and memory by the number of metrics."""
    asked = []
    monkeypatch.setattr(running_best, "examples_of", lambda values: asked.append(len(values)))
    watched([0.9999 ** (k // 2) for k in range(3000)])
    watched([0.5] * 30 + [round(0.1 + 0.8**k, 2) for k in range(40) for _ in range(2)])
    watched(best_so_far(noisy(0, 3000)))
    assert len(asked) <= 3
    assert max(asked) <= 32


def test_curves_of_a_few_levels(caplog):
    """As returns of an agent that reaches one goal after the other, in each training anew."""
    search, training = bc.CurveOptimizer(SPACE, iterations=50), RunningBest("accuracy")
    for _ in range(30):
        decision = search.ask()
        search.tell(decision, [[0.0, 10.0, 20.0, 50.0][min(k // 4, 3)] for k in _of(decision)])
        training.restart()
        for k in range(50):
            training.watch([0.0, 10.0, 20.0, 50.0][min(k // 4, 3)])
    assert not said(caplog)


def _of(decision):
    return range(decision.since, decision.until)


def test_by_a_reward(caplog):
    tuner, reward = bc.OnlineTuner(SPACE, 60, query=bc.AlwaysQuery()), GainReward("loss")
    for loss in best_so_far(noisy(0)):
        decision = tuner.ask()
        tuner.tell(decision, reward(loss, decision))
    assert len(said(caplog)) == 1


def test_by_a_validation(caplog):
    validation = bc.Validation(overhead=0.5, steps=199, clock=itertools.count().__next__)
    for step, loss in enumerate(best_so_far(noisy(0, 200))):
        if validation.due(step, train_loss=loss):
            validation.tell(loss)
    assert len(said(caplog)) == 1


def trained(losses, rounds=200, queries=1.0):
    network = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    session = Session.of(bc.TwinTuner(SPACE, rounds, queries=queries), network, optimizer)
    for decision, loss in zip(session, losses, strict=False):
        if decision.query:
            session.tell(decision, loss)
    session.finish()


def test_by_a_session(caplog):
    trained(best_so_far(noisy(0, 200)))
    assert len(said(caplog)) == 1
    caplog.clear()
    trained(noisy(0, 200))
    assert not said(caplog)


def test_of_a_session_a_state_that_is_returned_to_has_the_metric_that_it_had(caplog):
    """Settings that do nothing, on one batch after the other: twins have one metric."""
    network = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    session = Session.of(bc.TwinTuner(SPACE, 200, queries=1.0), network, optimizer)
    for decision in session:
        with torch.no_grad():
            network.bias -= 0.01
        if decision.query:
            session.tell(decision, math.exp(network.bias.item()))
    assert not said(caplog)


def test_by_a_population(caplog):
    tuner = bc.PopulationTuner(SPACE, 60, members=2)
    for loss in best_so_far(noisy(0)):
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, [loss, 1.1 * loss])
    assert len(said(caplog)) == 1


def test_by_curves(caplog):
    def told(curves):
        search = bc.CurveOptimizer(SPACE, 40, maximize=False)
        for seed in range(4):
            own = search.enqueue({"lr": 1e-3 * (1 + seed)})
            search.tell(own, curves(noisy(seed, 40))[: own.until])
        return said(caplog)

    assert len(told(best_so_far)) == 1
    caplog.clear()
    assert not told(list)
