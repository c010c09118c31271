"""Trials of an engine, in any order and from several processes, as evaluations of an optimizer."""

import math
import random

import pytest

import botorch_costly as bc
from botorch_costly import errors
from botorch_costly.integrations.offline import (
    Checkpoint,
    CurveTrials,
    Ended,
    ValueTrials,
)
from tests.cases import quick, slow
from tests.tuners.online.states import same

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "layers": bc.Integer(1, 5)})
LONGEST = 9
TASK = bc.Task(
    [{"lr": 10.0**-k, "layers": n} for k in (1, 2, 3, 4) for n in (1, 3, 5)],
    [-abs(k - 2.5) - abs(n - 3) for k in (1, 2, 3, 4) for n in (1, 3, 5)],
)
ROUGH = bc.Sampling(draws=2, first_steps=8, steps=8, points=5, candidates=20, first=9)


def transfer(seed=0):
    return ValueTrials(bc.TransferOptimizer(SPACE, [TASK], seed=seed))


def curves(seed=0):
    optimizer = bc.CurveOptimizer(
        SPACE, LONGEST, resumes=False, search=bc.Search(num_restarts=2), seed=seed
    )
    return CurveTrials(optimizer, "epochs", shortest=1, longest=LONGEST)


def subsets(seed=0):
    return ValueTrials(bc.SubsetOptimizer(SPACE, sampling=ROUGH, seed=seed))


def resumed(seed=0):
    optimizer = bc.CurveOptimizer(SPACE, LONGEST, search=bc.Search(num_restarts=2), seed=seed)
    return CurveTrials(optimizer, "epochs", shortest=1, longest=LONGEST)


KINDS = pytest.mark.parametrize(
    "make", quick([transfer, curves, resumed, subsets], transfer, resumed, subsets)
)


def metric(setting, share=1.0):
    return -abs(math.log10(setting["lr"]) + 2) - 0.1 * abs(setting["layers"] - 3) - 0.2 / share


def outcome(setting, how="complete"):
    """What a setting comes to, whichever kind it is of."""
    epochs = setting.get("epochs", 1)
    curve = {at: metric(setting, at / LONGEST) for at in range(1, epochs + 1)}
    value = metric(setting, setting.get("fraction", 1.0))
    return Ended(value, curve if "epochs" in setting else {}, float(epochs), how)


def known(trials):
    """What the optimizer was told, and what it holds to be under way, as text without an order."""
    rows = [
        {
            k: v
            for k, v in row.items()
            if k not in ("round", "training", "reason", "share", "weights")
        }
        for row in trials._optimizer.history
    ]
    return sorted(map(str, rows))


def played(engine, watcher, count=9, seed=0):
    """Run trials three at a time, which end in any order; another process only sees them."""
    order, running = random.Random(seed), {}
    for trial in range(count):
        running[trial] = engine.ask(trial)
        watcher.enter(trial, running[trial], engine.checkpoint_of(trial))
        if len(running) == 3:
            done = order.choice(sorted(running))
            how = ("complete", "complete", "stopped", "failed")[done % 4]
            ended = outcome(running.pop(done), how)
            engine.end(done, ended)
            watcher.end(done, ended)
    return running


@KINDS
def test_a_process_that_only_sees_knows_as_much_as_the_one_that_asked(make):
    engine, watcher = make(), make(seed=1)
    running = played(engine, watcher)
    assert known(watcher) == known(engine)
    assert [dict(one.config) for one in watcher._optimizer.pending] == [
        {name: setting[name] for name in SPACE.names} for setting in running.values()
    ]
    before = known(watcher)
    for trial, setting in running.items():
        watcher.enter(trial, setting)
    watcher.end(0, outcome({"lr": 0.1, "layers": 1}))
    assert known(watcher) == before
    watcher.ask(99)
    assert len(watcher._optimizer.pending) == len(running) + 1


@KINDS
def test_trials_one_by_one_are_those_of_the_plain_optimizer(make):
    trials, twin = make(), make()._optimizer
    for trial in range(5):
        setting, decision = trials.ask(trial), twin.ask()
        assert setting.items() >= dict(decision.config).items()
        ended = outcome(setting)
        trials.end(trial, ended)
        if make in (curves, resumed):
            twin.tell(decision, list(ended.curve.values())[decision.since :], cost=ended.cost)
        else:
            twin.tell(decision, ended.value, **({"cost": ended.cost} if make is subsets else {}))
    assert trials.best() == twin.best()


@KINDS
def test_no_two_trials_under_way_are_the_same(make):
    trials = make()
    for trial in range(6):
        trials.end(trial, outcome(trials.ask(trial)))
    settings = [trials.ask(("more", trial)) for trial in range(4)]
    assert len({tuple(setting.values()) for setting in settings}) == 4
    first = settings[0]
    assert trials.are_close(first, {**first, "lr": first["lr"] * 1.001})
    assert not trials.are_close(first, {**first, "lr": first["lr"] * 1.1})
    assert not trials.are_close(first, {**first, "layers": 1 + first["layers"] % 5})


@KINDS
def test_what_runs_otherwise_than_asked_is_entered_as_it_runs(make):
    trials = make()
    asked = trials.ask("a", lambda setting: {**setting, "layers": 2})
    assert asked["layers"] == 2
    assert [one.config["layers"] for one in trials._optimizer.pending] == [2]
    trials.enter("a", {**asked, "layers": 4})
    assert [one.config["layers"] for one in trials._optimizer.pending] == [4]
    trials.cancel("a")
    trials.cancel("never begun")
    assert trials._optimizer.pending == ()
    trials.end("a", outcome(asked))
    trials.enter("a", asked)
    assert trials._optimizer.history == []
    assert trials.has_ended("a")
    assert not trials.has_ended("b")


@KINDS
def test_a_setting_outside_is_refused_and_nothing_is_lost(make):
    trials, twin = make(), make()
    asked, _ = trials.ask("a"), twin.ask("a")
    before = trials.state_dict()
    for wrong in ({**asked, "layers": 9}, {"lr": 0.1}):
        with pytest.raises(errors.InvalidConfigError):
            trials.enter("a", wrong)
        for trial in ("a", "b"):
            with pytest.raises(errors.InvalidConfigError):
                trials.ask(trial, lambda setting, wrong=wrong: wrong)
            assert same(trials.state_dict(), before)

    def interrupted(setting):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trials.ask("b", interrupted)
    assert same(trials.state_dict(), before)
    for one in (trials, twin):
        one.end("a", outcome(asked))
    assert trials.ask("b") == twin.ask("b")
    assert same(trials.state_dict(), twin.state_dict())


SHORT = {
    "transfer": lambda: ValueTrials(bc.TransferOptimizer(SPACE, [TASK], horizon=2)),
    "curves": lambda: CurveTrials(
        bc.CurveOptimizer(SPACE, LONGEST, resumes=False, horizon=2),
        "epochs",
        shortest=1,
        longest=LONGEST,
    ),
    "subsets": lambda: ValueTrials(bc.SubsetOptimizer(SPACE, sampling=ROUGH, horizon=2)),
}


@pytest.mark.parametrize("kind", SHORT)
def test_beyond_the_horizon_nothing_is_lost(kind):
    trials = SHORT[kind]()
    asked = trials.ask("a")
    other = {**asked, "layers": 1 + asked["layers"] % 5}
    before = trials.state_dict()
    for refused in (
        lambda: trials.ask("b", lambda setting: {**setting, "layers": 1 + setting["layers"] % 5}),
        lambda: trials.ask("a", lambda setting: {**setting, "layers": 1 + setting["layers"] % 5}),
    ):
        with pytest.raises(errors.HorizonExceededError):
            refused()
        assert same(trials.state_dict(), before)
    trials.ask("b")
    before = trials.state_dict()
    for refused in (
        lambda: trials.ask("a"),
        lambda: trials.enter("a", other),
        lambda: trials.enter("c", other),
    ):
        with pytest.raises(errors.HorizonExceededError):
            refused()
        assert same(trials.state_dict(), before)
    assert trials.under_way().keys() == {"a", "b"}


@KINDS
def test_a_state_knows_the_trials_under_way(make):
    trials, again = make(), make()
    played(trials, make(seed=1), count=5)
    trials.rename(4, ("renamed", 4))
    again.load_state_dict(trials.state_dict())
    assert again.under_way() == trials.under_way()
    for trial in again.under_way():
        assert again.checkpoint_of(trial) == trials.checkpoint_of(trial)
    assert ("renamed", 4) in again.under_way()
    assert [again.has_ended(trial) for trial in range(5)] == [
        trials.has_ended(trial) for trial in range(5)
    ]
    for one in (trials, again):
        one.end(("renamed", 4), outcome(one.under_way()[("renamed", 4)]))
    assert again.ask("next") == trials.ask("next")
    assert known(again) == known(trials)


@pytest.mark.parametrize(
    "damage",
    [{"open": "[[0, 99]]"}, slow({"open": "[0]"}), {"ended": "{"}, slow({"optimizer": {}})],
)
def test_a_damaged_state_is_refused_and_nothing_is_lost(damage):
    trials, other = transfer(), transfer()
    played(trials, transfer(seed=1), count=4)
    before = trials.under_way(), known(trials)
    other.ask("a")
    with pytest.raises(errors.StateMismatchError):
        trials.load_state_dict({**other.state_dict(), **damage})
    assert (trials.under_way(), known(trials)) == before
    missing = other.state_dict()
    del missing[next(iter(damage))]
    with pytest.raises(errors.StateMismatchError):
        trials.load_state_dict(missing)
    assert (trials.under_way(), known(trials)) == before


def test_a_longer_training_of_a_configuration_is_known_as_such():
    trials = curves()
    setting = {"lr": 0.01, "layers": 3, "epochs": 3}
    for trial, epochs in enumerate((3, 9, 9)):
        trials.enter(trial, {**setting, "epochs": epochs})
        trials.end(trial, outcome({**setting, "epochs": epochs}))
    first, second = trials._optimizer.trainings
    assert (first.done, first.iterations, second.done) == (9, 12, 9)


@pytest.mark.parametrize(
    ("ended", "curve", "broken"),
    [
        (Ended(0.5), (None, None, None, 0.5), False),
        (Ended(0.5, {1: 0.1, 4: 0.4}), (0.1, None, None, 0.4), False),
        (Ended(None, {2: 0.2}, how="stopped"), (None, 0.2), False),
        (Ended(None, {2: math.nan}, how="stopped"), (None, None), True),
        (Ended(None, how="stopped"), (), False),
        (Ended(0.5, {1: 0.1}, how="failed"), (0.1,), True),
        (Ended(how="failed"), (), True),
    ],
)
def test_what_a_trial_has_shown_is_a_curve(ended, curve, broken):
    trials = curves()
    trials.enter(0, {"lr": 0.01, "layers": 3, "epochs": 4})
    trials.end(0, ended)
    (told,) = trials._optimizer.observations
    assert (told.curve, told.broken) == (curve, broken)


@pytest.mark.parametrize(
    ("ended", "curve", "broken"),
    [
        (Ended(0.5), (None, None, 0.5), False),
        (Ended(0.5, {1: 0.1, 4: 0.4}), (None, 0.4, 0.5), False),  # 1 is of the checkpoint
        (Ended(None, {3: 0.3}, how="stopped"), (0.3,), False),
        (Ended(None, {2: 0.2}, how="stopped"), (), False),
        (Ended(None, {3: 0.3}, how="failed"), (), False),
        (Ended(None, {3: math.nan}, how="failed"), (None,), True),
        (Ended(how="failed"), (), False),
    ],
)
def test_what_a_trial_that_goes_on_has_shown(ended, curve, broken):
    trials, setting = resumed(), {"lr": 0.01, "layers": 3}
    trials.enter("a", {**setting, "epochs": 2})
    trials.end("a", Ended(0.2, {1: 0.1}))
    trials.enter("b", {**setting, "epochs": 5}, Checkpoint("a", 2))
    assert trials.checkpoint_of("b") == Checkpoint("a", 2)
    trials.end("b", ended)
    told = trials._optimizer.observations[-1]
    assert (told.curve, told.broken) == (curve, broken)
    (training,) = trials._optimizer.trainings
    assert training.curve[:2] == (0.1, 0.2)
    if not broken:
        checkpoint = Checkpoint("b", 2 + len(curve)) if curve else Checkpoint("a", 2)
        trials.enter("c", {**setting, "epochs": 9}, checkpoint)
        assert trials.checkpoint_of("c") == checkpoint


def test_a_trial_that_goes_on_with_what_is_not_known_begins_anew():
    trials, setting = resumed(), {"lr": 0.01, "layers": 3}
    trials.enter("a", {**setting, "epochs": 2})
    trials.end("a", Ended(0.2))
    strange = [Checkpoint("a", 1), Checkpoint("x", 2), None]
    for trial, checkpoint in enumerate(strange):
        trials.enter(trial, {**setting, "epochs": 5}, checkpoint)
        assert trials.checkpoint_of(trial) is None
    trials.enter("other", {**setting, "layers": 2, "epochs": 5}, Checkpoint("a", 2))
    assert trials.checkpoint_of("other") is None
    assert len(trials._optimizer.trainings) == 5
    trials.ask("again", lambda _: {**setting, "epochs": 9}, Checkpoint("a", 2))
    assert trials.checkpoint_of("again") == Checkpoint("a", 2)


def test_where_trainings_stand_is_a_part_of_the_state():
    trials, setting = resumed(), {"lr": 0.01, "layers": 3}
    trials.enter(("a", 0), {**setting, "epochs": 2})
    trials.end(("a", 0), Ended(0.2))
    state = trials.state_dict()
    again = resumed()
    with pytest.raises(errors.StateMismatchError):
        again.load_state_dict({**state, "left_by": "[[0]]"})
    again.load_state_dict(state)
    again.enter("b", {**setting, "epochs": 5}, Checkpoint(("a", 0), 2))
    assert again.checkpoint_of("b") == (("a", 0), 2)


def test_what_was_stopped_or_failed_counts_as_the_worst_value():
    for make in (transfer, subsets):
        trials = make()
        for trial, how in enumerate(("complete", "stopped", "failed")):
            trials.end(trial, outcome(trials.ask(trial), how))
        assert [one.failed for one in trials._optimizer.observations] == [False, True, True]


def test_what_cannot_be_is_refused_and_may_be_told_again():
    trials = curves()
    trials.enter(0, {"lr": 0.01, "layers": 3, "epochs": 4})
    with pytest.raises(errors.InvalidArgumentError, match="the iterations 1 to 4"):
        trials.end(0, Ended(0.5, {0: 0.1, 5: 0.2}))
    trials.end(0, Ended(0.5))
    assert len(trials._optimizer.observations) == 1
    anew = bc.CurveOptimizer(SPACE, LONGEST, resumes=False)
    with pytest.raises(errors.InvalidSpaceError, match="layers"):
        CurveTrials(anew, "layers", shortest=1, longest=LONGEST)
    with pytest.raises(errors.InvalidArgumentError, match="how"):
        Ended(how="pruned")


def reported(iterations_of, count=8, longest=50):
    """Play complete trials with reports at some iterations."""
    optimizer = bc.CurveOptimizer(SPACE, longest, resumes=False, search=bc.Search(num_restarts=2))
    trials = CurveTrials(optimizer, "epochs", shortest=1, longest=longest)
    for number in range(count):
        setting = trials.ask(number)
        epochs = setting["epochs"]
        curve = {at: -1.0 / at for at in iterations_of(epochs, number)}
        trials.end(number, Ended(metric(setting, epochs / longest), curve, float(epochs)))


@pytest.mark.parametrize("every", [2, 3])
def test_reports_that_are_counted_are_named_once(every, caplog):
    reported(lambda epochs, number: range(1, epochs // every + 1))
    assert sum("reports of complete trials end early" in text for text in caplog.messages) == 1


@pytest.mark.parametrize(
    "iterations_of",
    [
        lambda epochs, number: range(1, epochs + 1),
        lambda epochs, number: range(3, epochs + 1, 3),
        lambda epochs, number: [],
        lambda epochs, number: range(1, epochs + 1 if number == 2 else epochs // 2 + 1),
    ],
)
def test_reports_of_iterations_are_not(iterations_of, caplog):
    reported(iterations_of)
    assert "end early" not in caplog.text
