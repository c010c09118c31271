"""Ray Tune's searcher, alone and on a local cluster."""

import json
import logging
import os
import signal
import subprocess
import sys
import time

import pytest

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, MissingExtraError, StateMismatchError
from botorch_costly.integrations import extras
from botorch_costly.integrations.offline import CurveTrials

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own
pytest.importorskip("ray.tune", reason="needs the extra botorch_costly[ray]")
from ray.tune.search import Searcher  # noqa: E402

from botorch_costly.integrations.ray import OfflineSearcher  # noqa: E402
from tests.integrations.launching import ROOT  # noqa: E402
from tests.integrations.ray_program import (  # noqa: E402
    EARLIER,
    LONGEST,
    ROUGH,
    SPACE,
    TRIALS,
    score,
    searcher_of,
    start,
    trainable,
    tune,
)


def transfer(**options):
    return bc.TransferOptimizer(SPACE, [EARLIER], **options)


def subsets(**options):
    return bc.SubsetOptimizer(SPACE, sampling=ROUGH, **options)


def curves(**options):
    search = bc.Search(num_restarts=2)
    optimizer = bc.CurveOptimizer(SPACE, LONGEST, resumes=False, search=search, **options)
    return CurveTrials(optimizer, "epochs", shortest=1, longest=LONGEST)


def searcher(make=transfer, mode="max", **options):
    return OfflineSearcher(make(**options), metric="score", mode=mode)


def reports(config):
    """What a trial reports, one after the other."""
    for epoch in range(1, config.get("epochs", 1) + 1):
        share = epoch / LONGEST if "epochs" in config else config.get("fraction", 1.0)
        yield {
            "score": score(config, share),
            "training_iteration": epoch,
            "time_total_s": 2.0 * epoch,
        }


def ended(search, trial, config, error=False):
    """A trial reports all it has, and ends; Ray flattens what a trial was told."""
    for result in reports(config):
        search.on_trial_result(trial, result)
    told = {f"config/{name}": value for name, value in config.items()}
    search.on_trial_complete(trial, None if error else {**result, **told}, error=error)


KINDS = pytest.mark.parametrize("make", [transfer, subsets, curves])


@KINDS
def test_trials_are_those_of_the_plain_optimizer(make):
    search, twin = searcher(make), make()
    twin = twin._optimizer if make is curves else twin
    for trial in map(str, range(5)):
        config, decision = search.suggest(trial), twin.ask()
        assert config.items() >= dict(decision.config).items()
        ended(search, trial, config)
        shown = list(reports(config))
        if make is curves:
            assert config["epochs"] == decision.until
            values = [one["score"] for one in shown]
            twin.tell(decision, values, cost=shown[-1]["time_total_s"])
        else:
            cost = {"cost": 2.0} if make is subsets else {}
            twin.tell(decision, shown[-1]["score"], **cost)
    assert search._trials.best() == twin.best()


@KINDS
def test_a_searcher_is_saved_with_its_trials_under_way(make, tmp_path):
    search, again = searcher(make), searcher(make)
    configs = {trial: search.suggest(trial) for trial in "abc"}
    assert len({tuple(config.items()) for config in configs.values()}) == 3
    ended(search, "b", configs["b"])
    search.on_trial_result("a", next(reports(configs["a"])))
    search.save(str(tmp_path / "state"))
    again.restore(str(tmp_path / "state"))
    for one in (search, again):
        one.on_trial_complete("a")  # its value and cost are those that it reported before
        one.on_trial_complete("c", error=True)  # it is as dear as the others
        assert len(one._trials._optimizer.observations) == 3
    assert again.suggest("d") == search.suggest("d")
    assert again._trials._optimizer.history == search._trials._optimizer.history
    assert os.listdir(tmp_path) == ["state"]


def test_a_damaged_file_is_refused_and_nothing_is_lost(tmp_path):
    search, path = searcher(), tmp_path / "state"
    search.suggest("a")
    before = search._trials.state_dict()["open"]
    path.write_bytes(b"no state")
    with pytest.raises(StateMismatchError, match="a file that a searcher saved"):
        search.restore(str(path))
    searcher(seed=1).save(str(path))
    with pytest.raises(StateMismatchError):
        search.restore(str(path))
    with pytest.raises(OSError, match="missing"):
        search.restore(str(tmp_path / "missing"))
    assert search._trials.state_dict()["open"] == before
    assert len(search._trials.under_way()) == 1


def test_a_trial_begun_after_the_last_save_is_entered(caplog):
    search = searcher()
    with caplog.at_level(logging.WARNING):
        ended(search, "unknown", {"lr": 0.01, "layers": 3, "constant": 1})
        assert not caplog.records
        search.on_trial_complete("silent", {"score": 1.0})
    assert "silent is not known" in caplog.text
    (told,) = search._trials._optimizer.observations
    assert told.reward == pytest.approx(-0.2)
    assert dict(told.config) == {"lr": 0.01, "layers": 3}


@KINDS
def test_a_trial_that_ended_before_it_began_is_taken_back(make):
    search = searcher(make)
    search.suggest("a")
    search.on_trial_complete("a")
    assert not search._trials.under_way()
    assert not search._trials._optimizer.observations


@pytest.mark.parametrize("make", [subsets, curves])
def test_a_trial_without_a_cost_is_as_dear_as_others(make):
    search = searcher(make)
    search.suggest("a")
    search.on_trial_complete("a", error=True)
    for trial, seconds in (("b", 3.0), ("c", 5.0)):
        ended(search, trial, search.suggest(trial))
        search._costs[trial] = seconds
    search.suggest("d")
    search.on_trial_complete("d", error=True)
    costs = [one.cost for one in search._trials._optimizer.observations]
    assert costs[0] == 1.0
    assert costs[3] == 4.0
    alike = OfflineSearcher(make(), metric="score", mode="max", cost=None)
    config = alike.suggest("a")
    ended(alike, "a", config)
    (told,) = alike._trials._optimizer.observations
    assert told.cost == pytest.approx(config.get("epochs", config.get("fraction")))


@KINDS
def test_a_number_that_no_float_holds_is_a_failure_or_not_known(make):
    search = searcher(make)
    config = search.suggest("a")
    for result in reports(config):
        search.on_trial_result("a", {**result, "score": 10**400, "time_total_s": 10**400})
    search.on_trial_complete("a", {**result, "score": -(10**400), "time_total_s": "long"})
    (told,) = search._trials._optimizer.observations
    assert told.failed
    assert make is transfer or told.cost == 1.0


def test_reports_beyond_the_planned_end_are_left_out(caplog):
    search = searcher(curves)
    config = search.suggest("a")
    with caplog.at_level(logging.WARNING):
        ended(search, "a", {**config, "epochs": config["epochs"] + 2})
    (told,) = search._trials._optimizer.observations
    assert len(told.curve) == config["epochs"]
    assert "others are left out" in caplog.text


def test_failed_trials_count_as_the_worst_or_as_diverged():
    for make in (transfer, curves):
        search = searcher(make)
        config = search.suggest("a")
        search.on_trial_complete("a", error=True)
        search.on_trial_complete("a", {"score": 1.0})  # a second time changes nothing
        (told,) = search._trials._optimizer.observations
        assert told.failed
        assert make is transfer or told.broken
        assert config != search.suggest("b")


def test_a_training_that_was_stopped_has_shown_a_part_of_its_curve():
    search = searcher(curves)
    config = search.suggest("a")
    config = {**config, "epochs": 4}
    search._trials.enter("a", config)
    results = list(reports(config))[:2]
    for result in results:
        search.on_trial_result("a", result)
    search.on_trial_complete("a", results[-1])
    (told,) = search._trials._optimizer.observations
    assert told.curve == tuple(result["score"] for result in results)
    assert not told.broken


def test_a_searcher_waits_for_trials_under_way_and_then_ends():
    space = bc.SearchSpace({"layers": bc.Integer(1, 2)})
    earlier = bc.Task([{"layers": 1}, {"layers": 2}], [1.0, 2.0])
    search = OfflineSearcher(bc.TransferOptimizer(space, [earlier]), metric="score", mode="max")
    assert [search.suggest(trial)["layers"] for trial in "ab"] == [2, 1]
    assert search.suggest("c") is None
    for trial in "ab":
        search.on_trial_complete(trial, {"score": 1.0})
    assert search.suggest("c") == Searcher.FINISHED


def test_metric_and_mode_may_come_with_the_run():
    search = OfflineSearcher(transfer(maximize=False))
    with pytest.raises(InvalidArgumentError, match="metric: Expected the name"):
        search.suggest("a")
    for mode in ("max", "best"):
        with pytest.raises(InvalidArgumentError, match=f"'min', the direction.*Received '{mode}'"):
            search.set_search_properties("score", mode, {})
        with pytest.raises((InvalidArgumentError, AssertionError)):
            OfflineSearcher(transfer(maximize=False), metric="score", mode=mode)
    with pytest.raises(InvalidArgumentError, match=r"param_space: Expected constants.*'lr'"):
        search.set_search_properties("score", "min", {"lr": 0.1})
    assert search.set_search_properties("score", "min", {"constant": 1})
    assert (search.metric, search.mode) == ("score", "min")
    assert search.suggest("a").keys() == {"lr", "layers"}


def test_bad_optimizers_and_older_libraries_are_refused(monkeypatch):
    resumes = bc.CurveOptimizer(SPACE, LONGEST)
    with pytest.raises(InvalidArgumentError, match="optimizer: Expected a TransferOptimizer"):
        OfflineSearcher(resumes)
    with pytest.raises(InvalidArgumentError, match="resumes=False"):
        OfflineSearcher(CurveTrials(resumes, "epochs", shortest=1, longest=LONGEST))
    monkeypatch.setattr(extras, "version", lambda package: "2.0.0")
    with pytest.raises(MissingExtraError, match="pip install 'ray"):
        searcher()


# -- on a local cluster ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    ray = start()
    yield ray
    ray.shutdown()


class InterruptOnce(tune.Callback):
    """Interrupts a run, as Ctrl-C does, once some trials have ended; not again after it is restored."""

    def __init__(self, folder, trials):
        self.mark, self.left = folder / "interrupted", trials

    def on_trial_complete(self, iteration, trials, trial, **info):
        self.left -= 1
        if self.left == 0 and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.slow
@pytest.mark.parametrize("make", [transfer, curves])
def test_a_run_on_a_local_cluster_is_interrupted_and_restored(make, cluster, tmp_path):
    limits = tune.TuneConfig(
        search_alg=searcher(make), num_samples=10, max_concurrent_trials=4, reuse_actors=True
    )
    place = tune.RunConfig(
        storage_path=str(tmp_path), name="run", verbose=0, callbacks=[InterruptOnce(tmp_path, 3)]
    )
    train = trainable()
    tune.Tuner(train, tune_config=limits, run_config=place).fit()
    halfway, end = searcher(make), searcher(make)
    halfway.restore_from_dir(str(tmp_path / "run"))
    early = halfway._trials._optimizer.observations
    assert 3 <= len(early) < 10
    under_way = halfway._trials.under_way().values()
    assert under_way

    results = tune.Tuner.restore(str(tmp_path / "run"), trainable=train).fit()
    assert len(results) == 10
    end.restore_from_dir(str(tmp_path / "run"))
    told = end._trials._optimizer.observations
    assert len(told) == 10
    assert not end._trials.under_way()
    assert all(one in told for one in early)
    ran = [result.config for result in results]
    assert all(setting in ran for setting in under_way)  # what was interrupted runs again as it was
    assert len({tuple(sorted(config.items())) for config in ran}) == 10
    assert max(map(score, ran)) > -1


def driver(folder, kind):
    command = [sys.executable, "-m", "tests.integrations.ray_program", str(folder), kind]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]])}
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, start_new_session=True, stderr=subprocess.DEVNULL
    )


def told_by(folder, kind):
    """What the optimizer of a saved run was told: values by configuration and fidelities."""
    saved = searcher_of(kind)
    saved.restore_from_dir(str(folder / "run"))
    optimizer = saved._trials._optimizer
    settings = {one.round: saved._trials._setting(one) for one in optimizer._ledger.suggestions}
    told = {tuple(sorted(settings[one.round].items())): one for one in optimizer.observations}
    assert len(told) == len(optimizer.observations)
    return told, saved._trials.under_way()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["transfer", "subsets"])
def test_a_run_whose_driver_is_killed_goes_on_and_its_scheduler_stops_trials(kind, tmp_path):
    """SIGKILL in the middle of a run with ASHA: nothing is lost, and nothing is run as two trials."""
    first, ended = driver(tmp_path, kind), tmp_path / "ended"
    until = time.monotonic() + 300
    while not (ended.exists() and int(ended.read_text() or 0) >= 4):
        assert first.poll() is None
        assert time.monotonic() < until
        time.sleep(0.1)
    time.sleep(1.0)  # what is under way is saved, too
    os.killpg(first.pid, signal.SIGKILL)
    first.wait(timeout=60)
    early, _ = told_by(tmp_path, kind)
    assert 1 <= len(early) < TRIALS

    assert driver(tmp_path, kind).wait(timeout=400) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    told, under_way = told_by(tmp_path, kind)
    assert not under_way
    assert len(results) == len(told) == TRIALS
    assert all(told[setting] == one for setting, one in early.items())
    for result in results:
        one = told[tuple(sorted(result["config"].items()))]
        assert one.reward == pytest.approx(result["score"])  # that of the last report
    steps = [result["steps"] for result in results]
    assert min(steps) < 9 == max(steps)
