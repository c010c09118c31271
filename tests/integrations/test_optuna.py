"""Optuna's studies, sampled after earlier ones: in one process, in threads, in two processes."""

import copy
import math
import pickle
import subprocess
import sys
from functools import partial

import pytest

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, InvalidCallError, MissingExtraError
from botorch_costly.task_records import Task
from tests.integrations.launching import ROOT

optuna = pytest.importorskip("optuna", reason="needs the extra botorch_costly[optuna]")
from optuna.distributions import (  # noqa: E402
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from botorch_costly.integrations.optuna import (  # noqa: E402
    CurveSampler,
    SubsetSampler,
    TransferSampler,
    trials,
)
from botorch_costly.integrations.optuna.distributions import Distributions  # noqa: E402
from botorch_costly.integrations.optuna.outcomes import CLAIM, Outcomes  # noqa: E402
from tests.cases import slow  # noqa: E402
from tests.integrations import optuna_program as program  # noqa: E402

MIXED = {
    "lr": FloatDistribution(1e-4, 1e-1, log=True),
    "dropout": FloatDistribution(0.0, 0.5, step=0.05),
    "layers": IntDistribution(1, 64, log=True),
    "width": IntDistribution(16, 128, step=16),
    "flag": CategoricalDistribution([False, None, "light", 0.5]),
    "fixed": IntDistribution(3, 3),
}


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.fixture(scope="module")
def earlier():
    return program.earlier()


def by_hand(earlier, outcomes):
    """Parameters of a plain optimizer that is asked and told in turn: the naive twin."""
    # Optuna sorts the names of what trials have in common.
    space = bc.SearchSpace({"layers": bc.Integer(1, 5), "lr": bc.Real(1e-4, 1e-1, log=True)})
    done = [(t.params, t.value) for t in earlier.trials]
    task = Task([params for params, _ in done], [value for _, value in done])
    optimizer, asked = bc.TransferOptimizer(space, [task], maximize=False), []
    for value in outcomes:
        decision = optimizer.ask()
        asked.append(dict(decision.config))
        optimizer.tell(decision, value)
    return asked


def test_a_study_is_a_plain_optimizer_after_earlier_tasks(earlier):
    study = optuna.create_study(sampler=TransferSampler([earlier]))
    study.optimize(program.objective, n_trials=6)
    outcomes = [trial.value for trial in study.trials]
    assert [trial.params for trial in study.trials] == by_hand(earlier, outcomes)
    assert min(outcomes) < 0.3


def test_distributions_and_back():
    distributions = Distributions(MIXED)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    for _ in range(30):
        params = study.ask(MIXED).params
        config = distributions.config(params)
        varied = {name: value for name, value in params.items() if name != "fixed"}
        back = distributions.params(distributions.space.canonical(config))
        assert back.keys() == varied.keys()
        for name, value in varied.items():
            same = pytest.approx(value) if isinstance(value, float) else value
            assert back[name] == same
            assert type(back[name]) is type(value)
            assert MIXED[name]._contains(MIXED[name].to_internal_repr(back[name]))


@pytest.mark.parametrize("params", [{}, {"lr": 1.0}, {"lr": "fast"}, {"lr": None}])
def test_parameters_outside_are_no_configuration(params):
    others = {"dropout": 0.1, "layers": 2, "width": 32, "flag": None}
    assert Distributions(MIXED).config({**others, **params}) is None


def test_a_mixed_space_and_parameters_that_come_and_go():
    def objective(trial):
        values = {}
        for name, d in MIXED.items():
            values[name] = trial._suggest(name, d)
        extra = trial.suggest_float("extra", 0, 1) if values["layers"] > 8 else 0.0
        return values["dropout"] + values["width"] / 100 + extra

    first = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    first.optimize(objective, n_trials=8)
    study = optuna.create_study(sampler=TransferSampler([first], warm_start=2))
    study.optimize(objective, n_trials=5)
    assert len(study.trials) == 5
    assert all(set(MIXED) <= set(trial.params) for trial in study.trials)


def test_a_sampler_says_what_the_trials_show(earlier):
    sampler = TransferSampler([earlier])
    study = optuna.create_study(sampler=sampler)
    assert str(sampler.diagnose(study)).startswith("Too early to say: 0 values")
    study.optimize(program.objective, n_trials=11)
    found = sampler.diagnose(study)
    assert (found.values, found.found) == (11, study.best_trial.number + 1)
    assert "share of the earlier tasks" in str(found)
    plain = SubsetSampler("fraction")
    assert plain.diagnose(optuna.create_study(sampler=plain)) is None  # no parameter is known


def test_tasks_are_studies_too(earlier):
    """A task of the same rows as a study is the same as the study."""
    suggested = []
    for one in (earlier, bc.task_from_optuna(earlier)):
        sampler = TransferSampler([one], distributions=program.DISTRIBUTIONS)
        study = optuna.create_study(sampler=sampler)
        study.optimize(program.objective, n_trials=3)
        suggested.append([trial.params for trial in study.trials])
    assert suggested[0] == suggested[1]
    unknown = optuna.create_study(sampler=TransferSampler([bc.task_from_optuna(earlier)]))
    unknown.optimize(program.objective, n_trials=2)  # the first is random, for want of a space
    assert len(unknown.trials) == 2


@pytest.mark.parametrize("wrong", [[], "study", None])
def test_no_study_and_no_task_is_refused(wrong):
    with pytest.raises(InvalidArgumentError, match=r"optuna\.Study or Task in a list"):
        TransferSampler(wrong)


def test_directions_may_differ(earlier):
    study = optuna.create_study(direction="maximize", sampler=TransferSampler([earlier]))
    study.optimize(lambda trial: -program.objective(trial), n_trials=4)
    assert study.best_value > -0.5


def test_a_sampler_of_two_studies_keeps_them_apart(earlier):
    sampler = TransferSampler([earlier])
    lower = optuna.create_study(sampler=sampler)
    upper = optuna.create_study(direction="maximize", sampler=sampler)
    lower.optimize(program.objective, n_trials=3)
    for _ in range(2):
        upper.optimize(lambda trial: -program.objective(trial), n_trials=2)
        lower.optimize(program.objective, n_trials=1)
        for study in (upper, lower):
            assert sampler.best_params(study) == study.best_params
            told = sampler._studied.trials._trials._optimizer.observations
            assert [one.reward for one in told] == [trial.value for trial in study.trials]
    other = optuna.create_study(sampler=sampler)
    other.optimize(lambda trial: trial.suggest_float("lr", 1e-4, 1e-1, log=True), n_trials=1)
    assert set(sampler.infer_relative_search_space(other, None)) == {"lr"}


def test_failed_pruned_and_foreign_trials_are_learnt_from(earlier):
    study = optuna.create_study(sampler=TransferSampler([earlier]))
    study.enqueue_trial({"lr": 1e-4, "layers": 1})
    study.optimize(program.objective, n_trials=1)

    def fails(trial):
        program.objective(trial)
        raise optuna.TrialPruned if trial.number == 2 else ZeroDivisionError

    study.optimize(fails, n_trials=2, catch=ZeroDivisionError)
    running = study.ask(program.DISTRIBUTIONS)
    study.optimize(program.objective, n_trials=1)
    optimizer = study.sampler._studied.trials._trials._optimizer
    told = {one.round: one.reward for one in optimizer.observations}
    assert len(told) == 3  # one was enqueued, one failed, one was pruned
    assert study.trials[0].params in [dict(one.config) for one in optimizer.decisions]
    under_way = [dict(one.config) for one in optimizer.pending]
    assert under_way == [running.params, study.trials[-1].params]  # and nothing that never began


@pytest.mark.parametrize("kind", program.KINDS)
def test_what_ends_before_all_is_suggested_is_not_tried_again(kind):
    def objective(trial):
        lr = trial.suggest_float("lr", 1e-4, 1e-1, log=True)
        raise optuna.TrialPruned if trial.number % 2 else ZeroDivisionError(lr)

    sampler = program.KINDS[kind][0]()
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=4, catch=ZeroDivisionError)
    assert all(set(trial.params) == {"lr"} for trial in study.trials)
    sampler.best_params(study)
    optimizer = sampler._studied.trials._trials._optimizer
    told = [one.config["lr"] for one in optimizer.observations]
    assert told == [trial.params["lr"] for trial in study.trials]
    assert len(set(told)) > 2
    assert len(optimizer.pending) == 0
    # What was suggested otherwise than claimed is what ran.
    trial = study.ask()
    trial.suggest_int("layers", 1, 5)
    study._storage.set_trial_param(trial._trial_id, "lr", 0.01, program.DISTRIBUTIONS["lr"])
    study.tell(trial, state=optuna.trial.TrialState.FAIL)
    sampler.best_params(study)
    assert optimizer.observations[-1].config["lr"] == 0.01


def test_threads_and_copies(earlier):
    sampler = TransferSampler([earlier])
    for copied in (copy.deepcopy(sampler), pickle.loads(pickle.dumps(sampler))):
        study = optuna.create_study(sampler=copied)
        study.optimize(program.objective, n_trials=4, n_jobs=2)
        params = [tuple(trial.params.values()) for trial in study.trials]
        assert len(set(params)) == 4


@pytest.mark.parametrize(
    ("kind", "before"), [("transfer", 0), slow(("curves", 12)), ("resumed", 12)]
)
def test_two_that_ask_at_once_do_not_begin_alike(kind, before, monkeypatch, tmp_path):
    """Each reads the storage before the other has said what it will run."""
    monkeypatch.setattr(Outcomes, "_seconds", lambda self, trial: 1.0)
    storage, (made, objective) = optuna.storages.InMemoryStorage(), program.KINDS[kind]
    objective = partial(objective, tmp_path) if kind == "resumed" else objective
    sampler = made()
    optuna.create_study(study_name="shared", storage=storage, sampler=sampler).optimize(
        objective, n_trials=before
    )
    studies = [  # two workers that would decide alike
        optuna.load_study(study_name="shared", storage=storage, sampler=copy.deepcopy(sampler))
        for _ in range(2)
    ]
    first, second = (study.ask() for study in studies)
    plain, claims = trials._claim, []

    def meanwhile(study, trial, setting, *others):
        claims.append((trial.number, setting))
        if trial.number == second.number and len(claims) == 1:
            first.suggest_float("lr", 1e-4, 1e-1, log=True)
        plain(study, trial, setting, *others)

    monkeypatch.setattr(trials, "_claim", meanwhile)
    second.suggest_float("lr", 1e-4, 1e-1, log=True)
    last, known = dict(claims), studies[1].sampler._studied.trials._trials
    assert [number for number, _ in claims[:2]] == [second.number, first.number]
    if kind != "transfer":
        assert known.are_close(claims[0][1], claims[1][1])  # both would go on with one training
    assert not known.are_close(last[first.number], last[second.number])
    assert len(known._optimizer.pending) == 2
    objective(first), objective(second)
    assert first.params != second.params


def test_where_others_were_faster_each_time_a_trial_is_random(monkeypatch):
    study = optuna.create_study(sampler=program.curves())
    study.optimize(program.objective_of_curves, n_trials=2)
    monkeypatch.setattr(trials.StudyTrials, "_is_taken", lambda *_: True)
    study.optimize(program.objective_of_curves, n_trials=1)
    assert study.trials[2].params["epochs"] == 1
    assert study.trials[2].system_attrs[CLAIM]["setting"] == {}
    monkeypatch.undo()
    study.optimize(program.objective_of_curves, n_trials=1)
    told = study.sampler._studied.trials._trials._optimizer.observations
    assert [one.config["lr"] for one in told] == [t.params["lr"] for t in study.trials[:3]]


def test_what_is_enqueued_is_under_way(earlier):
    study = optuna.create_study(sampler=TransferSampler([earlier]))
    for params in ({"lr": 1e-2, "layers": 3}, {"layers": 2}):
        study.enqueue_trial(params)
    study.enqueue_trial({"lr": 2e-3, "layers": 4})
    study.optimize(program.objective, n_trials=2)
    assert study.trials[1].params["layers"] == 2
    under_way = [
        dict(one.config) for one in study.sampler._studied.trials._trials._optimizer.pending
    ]
    assert under_way == [{"lr": 2e-3, "layers": 4}, study.trials[1].params]


def test_a_finite_space_may_be_tried_again(caplog):
    def objective(trial):
        return trial.suggest_int("layers", 1, 3)

    first = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    first.optimize(objective, n_trials=3)
    study = optuna.create_study(sampler=TransferSampler([first]))
    study.optimize(objective, n_trials=6)
    assert {trial.params["layers"] for trial in study.trials[:3]} == {1, 2, 3}
    assert len([said for said in caplog.messages if said.startswith("All has been tried")]) == 1


def test_the_best_parameters_are_those_of_the_optimizer(earlier):
    sampler = TransferSampler([earlier])
    study = optuna.create_study(sampler=sampler)
    assert sampler.best_params(study) is None
    study.optimize(program.objective, n_trials=4)
    assert sampler.best_params(study) == study.best_params


def worker(folder, name, trials, kind, *killed):
    command = [sys.executable, "-m", "tests.integrations.optuna_program"]
    return subprocess.Popen([*command, str(folder), name, str(trials), kind, *killed], cwd=ROOT)


@pytest.mark.slow
@pytest.mark.parametrize("kind", program.KINDS)
def test_two_processes_share_a_journal(tmp_path, kind):
    count = 50 if kind == "transfer" else 15
    workers = [worker(tmp_path, name, count, kind) for name in "ab"]
    assert [one.wait(timeout=900) for one in workers] == [0, 0]
    study = optuna.load_study(study_name="target", storage=program.storage(tmp_path))
    assert [trial.number for trial in study.trials] == list(range(2 * count))
    assert all(trial.state.name == "COMPLETE" for trial in study.trials)
    mine = [set(map(int, (tmp_path / f"{name}.txt").read_text().split())) for name in "ab"]
    assert [len(one) for one in mine] == [count, count]
    assert mine[0] | mine[1] == set(range(2 * count))
    params = [tuple(sorted(trial.params.items())) for trial in study.trials]
    assert len(set(params)) == 2 * count


@pytest.mark.slow
@pytest.mark.parametrize("kind", program.KINDS)
def test_a_process_that_is_killed_does_not_stop_the_study(tmp_path, kind):
    assert worker(tmp_path, "a", 8, kind, "3").wait(timeout=300) == -9
    assert worker(tmp_path, "b", 5, kind).wait(timeout=300) == 0
    study = optuna.load_study(study_name="target", storage=program.storage(tmp_path))
    states = [trial.state.name for trial in study.trials]
    assert states == ["COMPLETE", "COMPLETE", "RUNNING"] + ["COMPLETE"] * 5


def test_what_is_refused(earlier, monkeypatch):
    with pytest.raises(InvalidArgumentError, match="studies"):
        TransferSampler([])
    with pytest.raises(InvalidArgumentError, match="a completed trial"):
        TransferSampler([optuna.create_study()])
    two = optuna.create_study(directions=["minimize"] * 2, sampler=TransferSampler([earlier]))
    with pytest.raises(InvalidArgumentError, match="one objective"):
        two.ask(program.DISTRIBUTIONS).suggest_float("lr", 1e-4, 1e-1)
    other = TransferSampler([earlier], distributions={"batch": IntDistribution(1, 9)})
    with pytest.raises(InvalidArgumentError, match="batch"):
        optuna.create_study(sampler=other).ask().suggest_int("batch", 1, 9)
    monkeypatch.setattr("botorch_costly.integrations.extras.version", lambda _: "3.6.1")
    with pytest.raises(MissingExtraError, match="pip install 'optuna"):
        TransferSampler([earlier])


def test_curves_of_an_earlier_study_begin_the_next_search():
    earlier = optuna.create_study(sampler=program.curves())
    earlier.optimize(program.objective_of_curves, n_trials=12)
    task = bc.task_from_optuna(earlier, iterations=9)
    assert task.progress is not None
    sampler = CurveSampler("epochs", distributions=program.OF_CURVES, tasks=[task])
    study = optuna.create_study(sampler=sampler)
    study.optimize(program.objective_of_curves, n_trials=3)
    decided = sampler._studied.trials._trials._optimizer.history
    assert all("portfolio" in row["reason"] for row in decided)
    away = min(abs(math.log10(trial.params["lr"]) + 2) for trial in study.trials)
    assert away < 1.0  # of a range of three decades


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_larger_values_of_tasks_are_better_in_studies_of_both_directions(direction):
    rates = [10 ** (-4 + k / 10) for k in range(31)]
    task = Task([{"lr": rate, "layers": 3} for rate in rates], [-abs(k - 20) for k in range(31)])
    sampler = CurveSampler("epochs", distributions=program.OF_CURVES, tasks=[task])
    study = optuna.create_study(sampler=sampler, direction=direction)
    study.optimize(program.objective_of_curves, n_trials=1)
    assert abs(math.log10(study.trials[0].params["lr"]) + 2) < 0.3


def test_tasks_of_a_sampler_of_curves_are_checked():
    with pytest.raises(InvalidArgumentError, match="tasks: Expected a list of Task"):
        CurveSampler("epochs", tasks=[1])


def test_a_sampler_whose_studies_do_not_fit_has_no_diagnosis(earlier):
    sampler = TransferSampler([earlier])
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: trial.suggest_float("other", 0.0, 1.0), n_trials=3)
    assert sampler.diagnose(study) is None


@pytest.mark.parametrize("kind", [CurveSampler, SubsetSampler, TransferSampler])
def test_a_class_in_place_of_a_sampler_says_so(kind):
    study = optuna.create_study(sampler=kind)
    with pytest.raises(
        InvalidCallError, match=r"before_trial: Expected an object .* not the class"
    ):
        study.optimize(lambda trial: trial.suggest_float("lr", 0.0, 1.0), n_trials=1)
