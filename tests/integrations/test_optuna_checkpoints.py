"""Optuna's studies whose trials go on with checkpoints of others, fail, or are always pruned."""

import copy
import math
from functools import partial

import pytest

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError

optuna = pytest.importorskip("optuna", reason="needs the extra botorch_costly[optuna]")
from optuna.distributions import CategoricalDistribution, IntDistribution  # noqa: E402

from botorch_costly.integrations.optuna import CurveSampler, checkpoint_of, trials  # noqa: E402
from botorch_costly.integrations.optuna.outcomes import CLAIM, Outcomes  # noqa: E402
from tests.integrations import optuna_program as program  # noqa: E402
from tests.integrations.optuna_program import optimizer_of  # noqa: E402

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "layers": bc.Integer(1, 5)})
FEW = {"arm": CategoricalDistribution(["good", "bad"]), "epochs": IntDistribution(1, 16)}


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """Without logs, and all trials as dear: what is decided does not depend on the machine."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    monkeypatch.setattr(Outcomes, "_seconds", lambda self, trial: 1.0)


def test_a_study_that_goes_on_is_a_plain_optimizer_that_resumes(tmp_path):
    study = optuna.create_study(sampler=program.resumed())
    study.optimize(partial(program.objective_with_checkpoints, tmp_path), n_trials=11)
    twin, asked, told_by = bc.CurveOptimizer(SPACE, 9, maximize=False), [], {}
    for trial in study.trials:
        decision = twin.ask()
        asked.append({**decision.config, "epochs": decision.until})
        earlier = told_by.get(decision.training)
        assert checkpoint_of(trial) == (earlier, decision.since)
        assert sorted(trial.intermediate_values) == list(range(decision.since, decision.until))
        twin.tell(decision, list(trial.intermediate_values.values()), cost=1.0)
        told_by[decision.training] = trial.number
    assert [trial.params for trial in study.trials] == asked
    assert max(checkpoint_of(trial).iterations for trial in study.trials) > 1
    assert study.sampler.best_params(study) == twin.best()


def test_a_process_that_only_reads_knows_what_goes_on_with_what(tmp_path):
    journal = {"storage": program.storage(tmp_path), "study_name": "target"}
    study = optuna.create_study(sampler=program.resumed(), **journal)
    study.optimize(partial(program.objective_with_checkpoints, tmp_path), n_trials=10)
    under_way = study.ask()
    assert set(under_way.relative_params) == set(program.OF_CURVES)
    other = optuna.load_study(sampler=program.resumed(seed=1), **journal)
    ours, theirs = optimizer_of(study), optimizer_of(other)
    for one, two in zip(ours.trainings, theirs.trainings, strict=True):
        assert (dict(one.config), one.curve, one.until) == (dict(two.config), two.curve, two.until)
        assert one.iterations == one.done  # nothing was trained twice
    assert checkpoint_of(under_way) == checkpoint_of(other.trials[-1])
    other.optimize(partial(program.objective_with_checkpoints, tmp_path), n_trials=4)


def race(folder, before, patch):
    """Two processes ask at once, the slower one for an enqueued trial, after some trials.

    Returns:
        The checkpoints that both claimed at first, the slower's first, and both trials.
    """
    folder.mkdir()
    objective = partial(program.objective_with_checkpoints, folder)
    study = optuna.create_study(sampler=program.resumed())
    study.optimize(objective, n_trials=before)
    options = {"study_name": study.study_name, "storage": study._storage}
    other = optuna.load_study(sampler=program.resumed(), **options)
    study.enqueue_trial({"epochs": 9})
    plain, claims, faster = trials._claim, [], []

    def meanwhile(study, trial, setting, checkpoint, seconds):
        claims.append(checkpoint)
        if len(claims) == 1:  # the other process decides and claims just before
            faster.append(other.ask())
            assert faster[0].relative_params
        plain(study, trial, setting, checkpoint, seconds)

    with patch.context() as within:
        within.setattr(trials, "_claim", meanwhile)
        slower = study.ask()
        assert slower.relative_params["epochs"] == 9  # which are drawn when they are read
    return claims[:2], slower, faster


@pytest.mark.slow
def test_two_trials_never_go_on_with_one_checkpoint(tmp_path, monkeypatch):
    """Not even until different iterations: the second is enqueued with its number of these."""
    for before in range(14, 40):  # until both would go on with one checkpoint
        claims, slower, faster = race(tmp_path / str(before), before, monkeypatch)
        alike = len(claims) == 2 and claims[0] is not None and claims[0] == claims[1]
        if alike and faster[0].relative_params["epochs"] < 9:
            break
    assert alike
    assert claims[0] == checkpoint_of(faster[0])
    assert checkpoint_of(slower) != checkpoint_of(faster[0])


def few(trial):
    """A curve that is 1 / epoch for the good arm, and its epochs."""
    arm, epochs = (
        trial.suggest_categorical("arm", ["good", "bad"]),
        trial.suggest_int("epochs", 1, 16),
    )
    return [(2.0 if arm == "bad" else 0.0) + 1 / k for k in range(1, epochs + 1)]


@pytest.mark.parametrize("resumes", [False, True])
@pytest.mark.parametrize("how", ["pruned", "failed"])
def test_a_longer_training_that_never_comes_to_anything_is_asked_for_twice(how, resumes, caplog):
    """Else the best configuration would be asked for again and again, and nothing else."""

    def objective(trial):
        curve = few(trial)
        earlier, done = checkpoint_of(trial)
        assert resumes or earlier is None
        if trial.number > 1:
            raise optuna.TrialPruned if how == "pruned" else ArithmeticError
        for epoch in range(done, len(curve)):
            trial.report(curve[epoch], epoch)
        return curve[-1]

    study = optuna.create_study(sampler=CurveSampler(distributions=FEW, resumes=resumes))
    study.optimize(objective, n_trials=6, catch=ArithmeticError)
    optimizer = optimizer_of(study)
    assert [training.stalled for training in optimizer.trainings] == [2, 2]
    assert not any(training.broken for training in optimizer.trainings)
    assert study.sampler.best_params(study) == {"arm": "good"}
    assert "All has been tried" not in caplog.text
    study.optimize(objective, n_trials=1, catch=ArithmeticError)
    assert "All has been tried" in caplog.text


def test_what_was_known_before_a_longer_training_failed_stays_known():
    def objective(trial):
        curve = few(trial)
        if trial.number == 2:
            trial.report(curve[0], 0)
            raise ArithmeticError
        for epoch, value in enumerate(curve):
            trial.report(value, epoch)
        return curve[-1]

    study = optuna.create_study(sampler=CurveSampler(distributions=FEW))
    for arm, epochs in (("good", 3), ("bad", 3), ("good", 9)):
        study.enqueue_trial({"arm": arm, "epochs": epochs})
    study.optimize(objective, n_trials=3, catch=ArithmeticError)
    good, _ = optimizer_of(study).trainings
    assert study.trials[2].state.name == "FAIL"
    assert (good.curve, good.broken, good.stalled) == ((-1.0, -1 / 2, -1 / 3), False, 1)
    assert study.sampler.best_params(study) == {"arm": "good"}
    study.optimize(objective, n_trials=9)
    assert optimizer_of(study).trainings[0].is_whole


@pytest.mark.parametrize("resumes", [False, True])
def test_a_longer_training_that_reports_no_number_has_diverged(resumes):
    def objective(trial):
        curve = few(trial)
        for epoch in range(checkpoint_of(trial).iterations, len(curve)):
            trial.report(math.nan if trial.number > 1 and epoch else curve[epoch], epoch)
        return math.nan if trial.number > 1 else curve[-1]

    study = optuna.create_study(sampler=CurveSampler(distributions=FEW, resumes=resumes))
    study.optimize(objective, n_trials=3)
    assert [training.broken for training in optimizer_of(study).trainings].count(True) == 1


def test_a_pruned_trial_leaves_a_checkpoint_and_a_failed_one_does_not():
    def objective(trial):
        curve = few(trial)
        earlier, done = checkpoint_of(trial)
        seen.append((earlier, done))
        for epoch in range(done, len(curve)):
            trial.report(curve[epoch], epoch)
            if trial.number == 2:
                raise optuna.TrialPruned
            if trial.number == 3:
                raise ArithmeticError
        return curve[-1]

    seen = []
    only = {
        "arm": CategoricalDistribution(["good", "bad"]),
        "epochs": IntDistribution(1, 16, step=3),
    }
    study = optuna.create_study(sampler=CurveSampler(distributions=only, resumes=True))
    study.optimize(objective, n_trials=12, catch=ArithmeticError)
    first = [trial.params for trial in study.trials[:2]]
    assert {params["arm"] for params in first} == {"good", "bad"}
    begun, going_on = seen[:2], seen[2:]
    assert begun == [(None, 0)] * 2
    assert 3 not in [earlier for earlier, _ in going_on]
    assert (2, seen[2][1] + 1) in going_on
    left_at = {}
    for trial, (earlier, done) in zip(study.trials, seen, strict=True):
        assert earlier is None or (trial.params["arm"], done) == left_at[earlier]
        left_at[trial.number] = trial.params["arm"], max(trial.intermediate_values) + 1


def test_a_trial_that_is_tried_again_goes_on_with_the_same_checkpoint(tmp_path):
    study = optuna.create_study(sampler=program.resumed())
    study.optimize(partial(program.objective_with_checkpoints, tmp_path), n_trials=8)
    while True:
        failed = study.ask()
        assert failed.relative_params
        begun = checkpoint_of(failed)
        if begun.trial is not None:
            break
        study.tell(failed, program.objective_with_checkpoints(tmp_path, failed))
    claim = copy.deepcopy(study.trials[-1].system_attrs[CLAIM])
    params = dict(failed.relative_params)
    study.tell(failed, state=optuna.trial.TrialState.FAIL)
    again = optuna.trial.create_trial(
        state=optuna.trial.TrialState.WAITING,
        system_attrs={"fixed_params": params, CLAIM: claim},
    )
    study.add_trial(again)
    retried = study.ask()
    value = program.objective_with_checkpoints(tmp_path, retried)
    assert checkpoint_of(retried) == begun
    study.tell(retried, value)
    training = next(one for one in optimizer_of(study).trainings if one.done == params["epochs"])
    assert training.iterations == training.done


def test_what_is_refused():
    with pytest.raises(InvalidArgumentError, match="resumes: Expected a bool"):
        CurveSampler(resumes=1)
