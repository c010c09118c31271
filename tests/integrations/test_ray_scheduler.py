"""Ray Tune's population based training with our belief, alone and on a local cluster."""

import math
import pickle
from types import SimpleNamespace

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, InvalidSpaceError, MissingExtraError
from botorch_costly.integrations import extras

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own
pytest.importorskip("ray.tune", reason="needs the extra botorch_costly[ray]")

from botorch_costly.integrations.ray import PopulationScheduler  # noqa: E402
from tests.integrations.ray_program import member, start, tune  # noqa: E402

SPACE = bc.SearchSpace({"rate": bc.Real(0.0, 1.0)})


class Trial:
    def __init__(self, name):
        self.trial_id = self.experiment_tag = name
        self.config, self.evaluated_params = {"rate": 0.9, "constant": 1}, {}
        kept = SimpleNamespace(num_to_keep=None)
        self.run_metadata = SimpleNamespace(
            checkpoint_manager=SimpleNamespace(checkpoint_config=kept)
        )

    def is_finished(self):
        return False


def population(members=4, **options):
    scheduler = PopulationScheduler(SPACE, metric="score", mode="max", **options)
    trials = [Trial(f"t{i}") for i in range(members)]
    for trial in trials:
        scheduler.on_trial_add(SimpleNamespace(search_alg=None), trial)
    return scheduler, trials


def reported(scheduler, trials, time, scores):
    for trial, score in zip(trials, scores, strict=True):
        state = scheduler._trial_state[trial]
        scheduler._save_trial_state(state, time, {"score": score}, trial)


def test_the_first_trial_begins_with_its_own_configuration_and_the_others_spread():
    _, trials = population()
    rates = [trial.config["rate"] for trial in trials]
    assert rates[0] == 0.9
    assert len(set(rates)) == 4
    assert all(trial.config["constant"] == 1 for trial in trials)
    assert all(trial.evaluated_params["rate"] == trial.config["rate"] for trial in trials)


def test_gains_are_over_the_weights_that_a_trial_went_on_from():
    scheduler, trials = population()
    reported(scheduler, trials, 1, [0.0, 3.0, 1.0, 2.0])
    lower, upper = scheduler._quantiles()
    assert (lower, upper) == ([trials[0]], [trials[1]])
    config, _ = scheduler._get_new_config(trials[0], trials[1])
    assert config["constant"] == 1
    trials[0].config = config
    before = scheduler.belief.model.num_rows
    reported(scheduler, trials, 2, [3.5, 3.5, 1.5, 2.5])  # all gained one half
    scheduler._quantiles()
    rows = scheduler.belief.model
    mean = scheduler.belief.model.rewards[before:]
    assert rows.num_rows == before + 4
    assert mean.abs().max() < 2.0  # with the old weights of the first it would be 3


def test_failed_trials_go_on_from_living_ones_and_are_not_repeated():
    scheduler, trials = population()
    reported(scheduler, trials, 1, [math.nan, 3.0, -math.inf, math.nan])
    lower, upper = scheduler._quantiles()
    assert set(lower) == {trials[0], trials[2], trials[3]}
    assert upper == [trials[1]]
    rewards = scheduler.belief.model.rewards
    assert bool(rewards.isfinite().all())
    scheduler, trials = population()
    reported(scheduler, trials, 1, [math.nan] * 4)
    assert scheduler._quantiles() == ([], [])


def test_members_that_are_chosen_together_play_apart():
    scheduler, trials = population(8)
    reported(scheduler, trials, 1, [float(i) for i in range(8)])
    lower, upper = scheduler._quantiles()
    rates = [scheduler._get_new_config(t, upper[0])[0]["rate"] for t in lower]
    assert len(set(rates)) == len(lower) == 2


def test_a_scheduler_is_pickled_with_its_belief():
    scheduler, trials = population()
    reported(scheduler, trials, 1, [0.0, 3.0, 1.0, 2.0])
    scheduler._quantiles()
    again = pickle.loads(pickle.dumps(scheduler.belief))
    playing = torch.full((1, 1), 0.4, dtype=torch.float64)
    assert torch.equal(again.choose(1, playing), scheduler.belief.choose(1, playing))


def test_bad_arguments_and_older_libraries_are_refused(monkeypatch):
    with pytest.raises(InvalidArgumentError, match="mode: Expected 'max' or 'min'"):
        PopulationScheduler(SPACE, mode="best")
    with pytest.raises(InvalidArgumentError, match="interval"):
        PopulationScheduler(SPACE, interval=0)
    with pytest.raises(InvalidSpaceError):
        PopulationScheduler(bc.SearchSpace({"lr": bc.Scheduled(1e-3, 1e-1)}))
    monkeypatch.setattr(extras, "version", lambda package: "2.0.0")
    with pytest.raises(MissingExtraError, match="pip install 'ray"):
        PopulationScheduler(SPACE)


@pytest.mark.slow
def test_a_population_on_a_local_cluster_leaves_a_bad_start(tmp_path):
    ray = start()
    scheduler = PopulationScheduler(SPACE, metric="score", mode="max", interval=2)
    results = tune.Tuner(
        member(20),
        param_space={"rate": 0.9},
        tune_config=tune.TuneConfig(scheduler=scheduler, num_samples=4, reuse_actors=True),
        run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
    ).fit()
    ray.shutdown()
    assert not results.errors
    assert scheduler._num_perturbations >= 5
    assert scheduler.belief.model.num_rows >= 20
    best = max(result.metrics["score"] for result in results)
    assert best > 20 * (1 - 0.6**2) + 1  # more than the bad start for the whole run
