"""Runs at the edge: few rounds, odd metrics, odd spaces, decisions that are never told."""

import itertools
import math
import random

import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors
from botorch_costly.tuners.twins.levels import level_of
from tests import cases
from tests.tuners.twins.running import GOOD, RATE, Run, by_rate, play

MIXED = bc.SearchSpace(
    {
        "lr": bc.Scheduled(1e-4, 1.0),
        "decay": bc.Real(1e-6, 1e-1, log=True),
        "layers": bc.Integer(1, 8),
        "policy": bc.Choice(["none", "light", "strong"]),
        "fixed": bc.Choice(["only"]),
    }
)
SPACES = {
    "mixed": MIXED,
    "a choice": bc.SearchSpace({"policy": bc.Choice(["none", "light", "strong"])}),
    "an integer": bc.SearchSpace({"layers": bc.Integer(1, 3)}),
    "a number": bc.SearchSpace({"dropout": bc.Real(0, 0.9)}),
    "several scheduled": bc.SearchSpace(
        {
            "lr": bc.Scheduled(1e-4, 1.0),
            "lr_head": bc.Scheduled(1e-4, 1.0, base="cosine"),
            "temperature": bc.Scheduled(0.1, 10, base="constant", log=False),
        }
    ),
    "a narrow rate": bc.SearchSpace({"lr": bc.Scheduled(0.01, 0.011), "dropout": bc.Real(0, 1)}),
}
METRICS = {
    "constant": lambda run: 1.0,
    "NaN at first": lambda run: run.loss() if len(run.played) > 10 else math.nan,
    "NaN": lambda run: math.nan,
    "infinite": lambda run: math.inf,
    "huge": lambda run: 1e300 * run.loss(),
    "tiny": lambda run: 1e-300 * run.loss(),
    "from huge to tiny": lambda run: (1e300, 1e-300)[len(run.played) % 2],
    "a tensor": lambda run: torch.tensor(run.loss()),
}

SPACES_OF_ANY_LEVELS = [
    bc.SearchSpace({"lr": bc.Scheduled(1e-5, 10.0)}),
    bc.SearchSpace({"lr": bc.Real(1e-5, 1.0, log=True), "decay": bc.Real(1e-6, 1.0, log=True)}),
    bc.SearchSpace({"p": bc.Real(0.0, 0.6), "kind": bc.Choice(["a", "b"])}),
]


def even(config):
    return by_rate({"lr": config.get("lr", GOOD)})


def check_configs(tuner, rounds):
    assert len(tuner.decisions) == rounds
    for decision in tuner.decisions:
        tuner.space.check(decision.peak)
        tuner.space.encode(decision.peak)  # within the bounds, so not NaN
        numbers = [v for v in decision.config.values() if isinstance(v, float)]
        assert all(map(math.isfinite, numbers))
    tuner.space.check(tuner.incumbent)
    assert tuner.best() == tuner.incumbent
    assert math.isfinite(tuner.exploration_cost)
    assert str(tuner.given_back) in tuner.summary()


@pytest.mark.parametrize("horizon", [20, 100])
@pytest.mark.parametrize("metric", METRICS)
def test_odd_metrics_raise_nothing(metric, horizon):
    tuner = bc.TwinTuner(MIXED, horizon, start={**bc.TwinTuner(MIXED, 1).incumbent, "lr": GOOD})
    play(tuner, Run(even, noise=0.1), metric=METRICS[metric])
    check_configs(tuner, horizon)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("horizon", [1, 2, 5, 30, 120])
def test_any_space_and_any_horizon(space, horizon):
    tuner, run = bc.TwinTuner(SPACES[space], horizon, seed=1), Run(even, noise=0.05, slope=0.05)
    play(tuner, run)
    check_configs(tuner, horizon)
    assert tuner.given_back + len(run.played) == horizon


def test_a_single_choice_of_a_space_is_found():
    def speed(config):
        return {"none": 0.02, "light": 1.0, "strong": 0.1}[config["policy"]]

    tuner = bc.TwinTuner(SPACES["a choice"], 150, start={"policy": "none"})
    play(tuner, Run(speed))
    assert tuner.incumbent == {"policy": "light"}


def test_accuracies_are_told_as_fractions():
    tuner = bc.TwinTuner(RATE, 100, start={"lr": GOOD * 10}, metric="accuracy")
    play(tuner, Run(noise=0.0), metric=lambda run: 1 - run.loss())
    assert tuner.incumbent["lr"] < GOOD * 10
    for impossible in (97.0, -0.1):
        tuner = bc.TwinTuner(RATE, 100, metric="accuracy")
        with pytest.raises(errors.InvalidArgumentError, match="a fraction in"):
            tuner.tell(tuner.ask(), impossible)
    for perfect in (1.0, 0.0):
        tuner = bc.TwinTuner(RATE, 100, metric="accuracy")
        assert tuner.tell(tuner.ask(), perfect).reward == perfect


@pytest.mark.parametrize("kind", ["loss", "accuracy"])
def test_what_is_not_finite_is_the_lowest_level(kind):
    for value in (math.nan, math.inf, -math.inf):
        assert level_of(kind, value) == -math.inf
    for value in (-0.1, "0.1", None, True):
        with pytest.raises(errors.InvalidArgumentError, match="metric: Expected"):
            level_of(kind, value)
    better, worse = (0.1, 0.2) if kind == "loss" else (0.9, 0.8)
    assert level_of(kind, better) - level_of(kind, worse) == pytest.approx(math.log(2))


def test_a_saturated_loss_of_zero_is_told():
    tuner = bc.TwinTuner(RATE, 100)
    told = tuner.tell(tuner.ask(), 0.0)
    assert told.reward == 0.0
    assert not told.failed
    assert math.isnan(tuner.level_of(0.0))  # before a loss above 0 it compares nothing
    assert tuner.diagnose().worsened == 0.0
    tuner.tell(tuner.ask(), 0.5)
    assert tuner.level_of(0.0) == tuner.level_of(0.5) == -math.log(0.5)
    assert math.isfinite(tuner.level_of(5e-324))


def test_a_run_of_zeros_ends():
    tuner = bc.TwinTuner(RATE, 60)
    for _ in range(60):
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, 0.0)
    assert len(tuner.decisions) == 60


def test_one_saturated_query_is_no_fall_of_all_later_ones():
    """A legal extreme of a metric: a loss of 0 counts as the smallest above 0 so far."""
    decided = []
    for saturated in (0.0, 0.3):
        tuner = bc.TwinTuner(RATE, 100)
        losses = itertools.cycle([0.4, 0.3, saturated, 0.3, 0.3, 0.5])
        for _ in range(100):
            decision = tuner.ask()
            if decision.query:
                tuner.tell(decision, next(losses))
        assert tuner.diagnose().worsened < 1.0
        decided.append(tuner.decisions)
    assert decided[0] == decided[1]


@pytest.mark.parametrize("loss", [-0.5, -1e-300])
def test_a_loss_that_is_none_is_refused_with_a_way_out(loss):
    tuner = bc.TwinTuner(RATE, 100)
    with pytest.raises(errors.InvalidArgumentError, match="to be maximized as an accuracy"):
        tuner.tell(tuner.ask(), loss)
    assert tuner.observations == ()


@pytest.mark.parametrize(
    ("space", "options", "message"),
    [
        (bc.SearchSpace({"only": bc.Choice(["one"])}), {}, "something to tune"),
        (None, {}, "space"),
        (RATE, {"horizon": 0}, "horizon"),
        (RATE, {"start": {"lr": 2.0}}, "lr"),
        (RATE, {"start": {}}, "config"),
        (RATE, {"metric": "f1"}, "metric: Expected one of"),
        (RATE, {"queries": -1.0}, "queries"),
        (RATE, {"queries": math.nan}, "queries"),
        (RATE, {"queries": 1.5}, "queries"),
        (RATE, {"seed": -1}, "seed"),
    ],
)
def test_bad_options_are_named(space, options, message):
    with pytest.raises(errors.CostlyError, match=message):
        bc.TwinTuner(space, **{"horizon": 10, **options})


@pytest.mark.parametrize("untold", [0, 1, 2, 5])
def test_a_query_that_is_never_told_is_taken_for_none(untold):
    tuner, run = bc.TwinTuner(RATE, 60, start={"lr": GOOD * 10}), Run()
    session, queries = bc.Session.of(tuner, run), 0
    for decision in session:
        run.train(decision.config)
        if decision.query:
            if queries != untold:
                session.tell(decision, run.loss())
            queries += 1
    assert tuner.given_back + len(run.played) == 60
    assert math.isfinite(run.level)


def test_nothing_told_at_all_plays_the_start():
    tuner, run = bc.TwinTuner(RATE, 60, start={"lr": GOOD}), Run()
    for decision in bc.Session.of(tuner, run):
        run.train(decision.config)
    assert [d.peak["lr"] for d in tuner.decisions] == pytest.approx([GOOD] * 60)
    assert [config["lr"] for config in run.played[:48]] == pytest.approx([GOOD] * 48)
    assert tuner.observations == ()


@pytest.mark.parametrize("after", [0, 1, 3, 8, 30])
def test_after_settling_the_incumbent_is_played_to_the_end(after):
    tuner, run = bc.TwinTuner(RATE, 50, start={"lr": GOOD * 10}), Run()
    session = play(tuner, run, rounds=after)
    tuner.settle()
    incumbent = tuner.incumbent
    tuner.settle()  # once more changes nothing
    saved = tuner.state_dict()
    rest = [session.ask() for _ in range(10)]
    late = tuner.state_dict()
    rest += [session.ask() for _ in range(40 - after)]
    assert all(decision.peak == incumbent for decision in rest)
    assert all(decision.restore is None and not decision.query for decision in rest)
    other = bc.TwinTuner(RATE, 50, start={"lr": GOOD * 10})
    other.load_state_dict(saved)
    assert [other.ask() for _ in rest] == rest
    other.load_state_dict(late)
    assert [other.ask() for _ in rest[10:]] == rest[10:]
    with pytest.raises(errors.HorizonExceededError):
        tuner.ask()


def test_damaged_progress_leaves_the_plan_alone():
    tuner, run = bc.TwinTuner(RATE, 60, start={"lr": GOOD * 10}), Run()
    play(tuner, run, rounds=25)
    before = tuner.incumbent
    longer = bc.TwinTuner(RATE, 60, start={"lr": GOOD * 10}).state_dict()
    longer["progress"] = f"[{[1.0] * 500}, NaN, 0, null, true]"
    with pytest.raises(errors.StateMismatchError):
        tuner.load_state_dict(longer)
    assert tuner.incumbent == before
    play(tuner, run)
    assert len(tuner.decisions) == 60


def test_a_rate_whose_state_was_let_go_is_not_gone_on_from():
    """A state that the plan counts on and that is not kept: later rates made a lost one the fastest."""
    tuner = bc.TwinTuner(bc.SearchSpace({"lr": bc.Scheduled(1e-5, 10.0)}), 200, start={"lr": 1e-2})
    losses = itertools.chain([0.7, 0.6, 0.2, 2, 2, 2, 1.2, 1.4, 1.1], itertools.repeat(1.0))
    for _ in range(200):
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, next(losses))


@pytest.mark.parametrize("seed", range(12))
def test_any_levels_are_planned_with(seed):
    """Few levels in any order, those of diverged networks among them, and queries without a metric."""
    draw = random.Random(seed)
    space = SPACES_OF_ANY_LEVELS[seed % len(SPACES_OF_ANY_LEVELS)]
    tuner, kept = bc.TwinTuner(space, draw.choice([5, 60, 200]), seed=seed), set()
    for _ in range(tuner.horizon):
        decision = tuner.ask()
        assert decision.restore is None or decision.restore in kept
        kept = (kept | {decision.keep}) - set(decision.drop)
        if decision.query and draw.random() < 0.95:
            tuner.tell(decision, draw.choice([0.0, 0.1, 0.2, 0.5, 0.7, 1.0, 1.4, 2.0, math.nan]))


@pytest.mark.parametrize("diverged", cases.quick([math.nan, math.inf, 1e300], math.nan))
# Of the longer trainings, so many do not diverge.
@pytest.mark.parametrize("lasting", [0, 1, 2, 10])
@pytest.mark.parametrize("moving", [0.1, 0.3, -0.3])  # decades of the best rate, a round
def test_rates_may_diverge_when_they_are_trained_for_longer(diverged, lasting, moving):
    """The search goes on from a state that is held, and so does a run that is stopped."""
    tuner, kept, longer = bc.TwinTuner(RATE, 200, start={"lr": 1e-3}), set(), 0
    for _ in range(tuner.horizon):
        decision = tuner.ask()
        assert decision.restore is None or decision.restore in kept
        kept = (kept | {decision.keep}) - set(decision.drop)
        assert tuner.state_of_incumbent is None or tuner.state_of_incumbent in kept
        if decision.query:
            rounds, distance = decision.trained + 1, math.log10(decision.config["lr"]) + 2.5
            loss = math.exp(-0.05 * rounds) * (1 + 0.3 * abs(distance - moving * rounds))
            is_longer = "a trial of the learning rate" in decision.reason and rounds > 3
            longer += is_longer
            tuner.tell(decision, diverged if is_longer and longer > lasting else loss)
    assert longer > 0


def test_twins_take_no_variance():
    """Of a metric it says nothing about the difference from another one on the same examples."""
    tuner, network = bc.TwinTuner(RATE, 50, start={"lr": GOOD * 10}), torch.nn.Linear(1, 1)
    session = bc.Session.of(tuner, network)
    decision = session.ask()
    for told in (tuner.tell, session.tell):
        with pytest.raises(
            errors.InvalidArgumentError, match=r"variance: Expected 0, .*Received 0\.1"
        ):
            told(decision, 1.0, variance=0.1)
    assert tuner.observations == ()
    session.tell(decision, 1.0, variance=0.0, seconds=2.0)
