"""When to tune: runs resume with the same decisions, methods do what they say, bad input is named."""

import argparse
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.harness.record import rows_of
from benchmarks.suite import data
from benchmarks.suite.data import MissingDataError, Part
from benchmarks.suite.protocol import Metrics, OnlineProblem, TrainingRun
from benchmarks.suite.runner import run_online
from benchmarks.training.picture_run import Batches, Kept, pictures_of
from benchmarks.training.schedule import benchmark, timing
from benchmarks.training.schedule.benchmark import text, with_grid
from benchmarks.training.schedule.methods import METHODS, policy_of
from benchmarks.training.schedule.recipes import CPU, TRAIN, TUNE, tiny
from benchmarks.training.schedule.run import ScheduleProblem, measured
from botorch_costly.errors import InvalidArgumentError, InvalidConfigError, StateMismatchError
from tests.benchmarks.test_online_suite import same_state, seeded
from tests.cases import quick

# Rates of a coin are alike in all that is tested here; none of the tests is about one.
KINDS = [method for method in METHODS if "Ber(0.2)" not in method]


def pictures(count: int = 400, side: int = 32) -> Part:
    """Return pictures whose colours tell their class."""
    targets = torch.arange(count) % 10
    noise = 0.3 * torch.rand(count, 3, side, side, generator=seeded(0))
    colours = torch.rand(10, 3, 1, 1, generator=seeded(1))
    return Part((0.7 * colours[targets] + noise).clamp(0, 1), targets)


def problem(recipe=CPU, **changes) -> ScheduleProblem:
    changes = {"data": pictures, "epochs": 5, **changes}
    return ScheduleProblem(replace(tiny(recipe), **changes))


def trained(arm: str, rounds: int = 4, **changes):
    run = problem(**changes).setup(0)
    for _ in range(rounds):
        run.train_round({"arm": arm})
    return run


class TestRun:
    def test_it_is_what_the_protocol_says(self):
        assert isinstance(problem(), OnlineProblem)
        assert isinstance(problem().setup(0), TrainingRun)

    @pytest.mark.parametrize(
        ("arm", "tunings"), [(TRAIN, 0), (TUNE, 8), ("2 to 1", 4), ("5 to 1", 1), ("10 to 1", 0)]
    )
    def test_each_pace_tunes_as_often_as_it_says(self, arm, tunings):
        run = trained(arm)
        assert run.tunings == tunings
        start = {name: b.start for name, b in run.recipe.hyperparameters.items()}
        assert (run.hyperparameters.current() == pytest.approx(start)) == (tunings == 0)

    def test_it_trains_and_is_resumed_on_the_device_of_its_recipe(self, tkwargs, tmp_path):
        device = str(tkwargs["device"])
        run, other = trained(TUNE, 2, device=device), problem(device=device).setup(0)
        torch.save(run.state_dict(), tmp_path / "state")
        other.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
        for same in (run, other):
            same.train_round({"arm": TUNE})
            assert {w.device.type for w in same.network.parameters()} == {tkwargs["device"].type}
        assert run.validate() == other.validate()

    def test_it_learns(self):
        run = problem().setup(0)
        before = run.validate()
        for _ in range(15):
            run.train_round({"arm": TUNE})
        assert run.validate().loss < 0.8 * before.loss
        assert run.validate().accuracy > 0.3 > before.accuracy

    def test_querying_and_testing_change_nothing_that_trains(self):
        run, other = trained(TUNE), trained(TUNE)
        assert run.validate() == run.validate()
        run.test()
        for one in (run, other):
            one.train_round({"arm": TUNE})
        assert same_state(run.save(), other.save())

    def test_a_resumed_run_continues_bit_for_bit_and_the_global_generator_is_left_alone(
        self, tmp_path
    ):
        before = torch.get_rng_state()
        straight, resumed = trained(TUNE), problem().setup(0)
        torch.save(straight.state_dict(), tmp_path / "state")
        resumed.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
        for run in (straight, resumed):
            run.train_round({"arm": "2 to 1"})
            run.test()
        ours, theirs = ({**run.state_dict(), "seconds": []} for run in (straight, resumed))
        assert same_state(ours, theirs)
        assert torch.equal(torch.get_rng_state(), before)

    def test_half_precision_trains_as_well(self):
        run = trained(TUNE, precision="bf16")
        assert run.tunings == 8
        assert run.validate().loss < 5

    def test_the_learning_rate_decays_at_its_shares(self):
        rates = [CPU.rate(round) for round in range(CPU.horizon)]
        assert CPU.horizon == 200
        assert rates[79:81] == pytest.approx([0.1, 0.01])
        assert rates[133:135] == pytest.approx([0.01, 0.001])
        assert rates[159:161] == pytest.approx([0.001, 0.0001])

    def test_parts_share_nothing(self):
        run = problem(train=20, validation=15).setup(3)
        seen = [row.numpy().tobytes() for part in run._parts.values() for row in part.inputs]
        assert len(seen) == len(set(seen)) == 400 - 10 * 5 + min(50, 80)


class TestBandits:
    """A round that tunes gains three tenths of a point, any other nothing; one jump gains ten."""

    def played(self, method: str, seed: int, jump: int | None = None) -> tuple[float, list[float]]:
        policy = policy_of(method, ScheduleProblem(CPU), seed)
        tuner, accuracy, tuned, gains = policy.policy.tuner, 0.1, 0, []
        tell = tuner.tell
        tuner.tell = lambda decision, reward: (gains.append(reward), tell(decision, reward))
        for now in range(CPU.horizon):
            decision = policy.decide()
            tunes = decision.config["arm"] == TUNE
            tuned += tunes
            accuracy += 0.1 if now == jump else 0.003 * tunes
            if decision.query:
                policy.query(decision, Metrics(1.0, accuracy))
        return tuned / CPU.horizon, [gain for gain in gains if gain is not None]

    @pytest.mark.slow
    def test_softmax_leaves_no_arm_that_was_never_queried(self):
        shares = [self.played("softmax Ber(0.2)", seed)[0] for seed in range(9)]
        assert min(shares) > 0.2  # 0.005 where no gain counts as half of the range

    @pytest.mark.parametrize(
        "method", quick(["softmax Ber(0.2)", "EXP3.R Ber(0.2)"], "softmax Ber(0.2)")
    )
    def test_gains_are_clipped_at_two_points(self, method):
        _, gains = self.played(method, 0, jump=180)
        _, calm = self.played(method, 0)
        assert max(calm) <= 0.3 + 1e-9 < max(gains) <= 2
        assert min(calm) == pytest.approx(0.0, abs=1e-9)  # no gain is 0, whatever the strategy


class TestBadInput:
    def test_an_unknown_arm(self):
        with pytest.raises(InvalidConfigError, match="train only"):
            problem().setup(0).train_round({"arm": "tune only"})

    def test_pictures_of_another_shape(self):
        with pytest.raises(InvalidArgumentError, match="n x 3 x 32 x 32"):
            problem(data=lambda: pictures(side=28)).setup(0)
        with pytest.raises(InvalidArgumentError, match="one for each"):
            pictures_of(lambda: Part(torch.zeros(3, 3, 32, 32), torch.zeros(2)))

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"targets": torch.arange(400) % 11}, "integers from 0 to 9"),
            ({"targets": torch.arange(400) % 10 - 1}, "integers from 0 to 9"),
            ({"targets": (torch.arange(400) % 10).float()}, "integers from 0 to 9"),
            ({"inputs": torch.full((400, 3, 32, 32), math.nan)}, "finite pixels"),
            ({"inputs": torch.zeros(0, 3, 32, 32), "targets": torch.arange(0)}, "at least one"),
        ],
        ids=["eleven", "negative", "floats", "nan", "none"],
    )
    def test_labels_and_pixels_that_make_no_sense(self, change, said):
        with pytest.raises(InvalidArgumentError, match=said):
            problem(data=lambda: pictures()._replace(**change)).setup(0)

    def test_too_few_pictures(self):
        with pytest.raises(InvalidArgumentError, match="at least 16 of each class"):
            problem(data=lambda: pictures(50)).setup(0)
        with pytest.raises(InvalidArgumentError, match="at most the 400"):
            Batches(pictures(), 401, seeded(0))

    def test_a_folder_without_the_data(self, tmp_path, monkeypatch):
        monkeypatch.setenv("BOTORCH_COSTLY_DATA", str(tmp_path))
        data._cifar10.cache_clear()
        with pytest.raises(MissingDataError, match="cifar10_jpeg93"):
            ScheduleProblem(CPU).setup(0)

    @pytest.mark.parametrize("content", ["other arrays", "no arrays", "nothing"])
    def test_a_file_that_does_not_hold_the_pictures(self, content, tmp_path, monkeypatch):
        monkeypatch.setenv("BOTORCH_COSTLY_DATA", str(tmp_path))
        data._cifar10.cache_clear()
        path = tmp_path / "cifar10_jpeg93.npz"
        if content == "other arrays":
            np.savez(path, labels=np.zeros(3))
        else:
            path.write_bytes(b"PK half a file" if content == "no arrays" else b"")
        with pytest.raises(MissingDataError, match=r"Expected a file .*arrays"):
            ScheduleProblem(CPU).setup(0)

    def test_a_device_that_is_not_there(self):
        options = {
            "published": False,
            "middle": False,
            "smoke": False,
            "precision": None,
            "device": "cuda:77",
        }
        with pytest.raises(InvalidArgumentError, match="device"):
            benchmark.recipe_of(argparse.Namespace(**options))
        with pytest.raises(InvalidArgumentError, match="device"):
            problem(device="cuda:77").setup(0)
        with pytest.raises(InvalidArgumentError, match="device"):
            main(["stn", "--published", "--device", "cuda:77", "--seeds", "1"])

    def test_a_state_of_another_run(self):
        state = problem().setup(0).state_dict()
        with pytest.raises(StateMismatchError, match="seed"):
            problem().setup(1).load_state_dict(state)
        with pytest.raises(StateMismatchError, match="recipe"):
            problem(name="other").setup(0).load_state_dict(state)

    @pytest.mark.parametrize(
        "change", [{"epochs": 0}, {"tau": -1.0}, {"precision": "fp8"}, {"learning_rate": 0.0}]
    )
    def test_a_recipe_that_makes_no_sense(self, change):
        with pytest.raises(InvalidArgumentError, match=next(iter(change))):
            replace(CPU, **change)


class TestDivergence:
    """A network whose numbers are none any more: the worst there is, and the run goes on."""

    def test_a_network_that_diverged_has_the_worst_metrics(self):
        run = trained(TUNE)
        with torch.no_grad():
            run.network.head.weight.fill_(math.nan)
        assert run.validate() == (worst := Metrics(100.0, 0.0))
        assert run.test() == worst

    def test_too_large_a_loss_is_cut_and_its_hits_count(self):
        part = Part(torch.zeros(4, 3, 2, 2), torch.tensor([0, 1, 2, 0]))
        sure = torch.tensor([1e6, 0.0, 0.0])
        assert measured(lambda pixels: sure.expand(len(pixels), -1), part) == Metrics(100.0, 0.5)

    def test_hyperparameters_stay_where_no_gradient_is_a_number(self):
        run = trained(TUNE)
        with torch.no_grad():
            run.network.head.weight.fill_(math.nan)
        for _ in range(2):
            run.train_round({"arm": TUNE})
        assert all(math.isfinite(value) for value in run.hyperparameters.current().values())
        assert bool(run.hyperparameters.scale.isfinite().all())

    @pytest.mark.parametrize("method", quick(KINDS, KINDS[-1]))
    def test_the_run_goes_on_to_its_end_is_stored_and_resumed(self, method, tmp_path):
        recipe = problem(learning_rate=1e30)
        kept = Kept(recipe)
        options = {"checkpoint": tmp_path / "checkpoint.pt", "report_every": 2}
        straight = run_online(kept, policy_of(method, recipe, 3), 3, report_every=2)
        assert kept.run.validate() == Metrics(100.0, 0.0)
        json.dumps(kept.run.reports, allow_nan=False)  # as a row is stored
        run_online(recipe, policy_of(method, recipe, 3), 3, rounds=7, **options)
        resumed = run_online(recipe, policy_of(method, recipe, 3), 3, **options)
        assert resumed.decisions == straight.decisions
        assert len(resumed.decisions) == recipe.horizon

    def test_a_tuner_hears_of_it_as_a_fall_to_the_bottom(self):
        recipe = problem()
        policy = policy_of("as it comes", recipe, 0)
        for metrics in (Metrics(0.5, 0.8), Metrics(100.0, 0.0)):
            decision = policy.decide()
            policy.query(decision, metrics)
        told = policy.policy.tuner.observations[-1]
        assert told.reward is not None
        assert told.reward < 0
        assert policy.decide().round == 2


class KilledError(Exception):
    """A run is over before its end."""


@pytest.mark.parametrize(
    ("method", "save_every"),
    quick(
        [(m, 1) for m in KINDS] + [("confidence 0.8", 4)],
        (KINDS[-1], 1),
        ("confidence 0.8", 4),
    ),
)
def test_a_killed_run_continues_with_the_same_decisions(method, save_every, tmp_path):
    recipe = problem()
    straight = run_online(recipe, policy_of(method, recipe, 7), 7)

    def kill(record):
        if len(record.decisions) in (5, 6, 11):
            raise KilledError

    path, kills = tmp_path / "checkpoint.pt", 0
    options = {"checkpoint": path, "save_every": save_every}
    while True:
        policy = policy_of(method, recipe, 7)
        try:
            # A run that is killed after a round that was not saved plays it again.
            after = kill if kills < 3 else (lambda record: None)
            resumed = run_online(recipe, policy, 7, after_round=after, **options)
            break
        except KilledError:
            kills += 1
    assert kills == 3
    assert [d.to_dict() for d in resumed.decisions] == [d.to_dict() for d in straight.decisions]
    assert resumed.queries == straight.queries
    assert resumed.test_accuracy == straight.test_accuracy


def test_static_schedules_query_nothing_and_switch_once():
    recipe = problem()
    arms = {}
    for method in ("switching", TUNE, "5 to 1"):
        policy = policy_of(method, recipe, 0)
        decisions = [policy.decide() for _ in range(recipe.horizon)]
        assert not any(decision.query for decision in decisions)
        arms[method] = [decision.config["arm"] for decision in decisions]
    assert set(arms[TUNE]) == {TUNE}
    assert set(arms["5 to 1"]) == {"5 to 1"}
    at = arms["switching"].index("2 to 1")
    assert at == pytest.approx(recipe.horizon * 100 / 150, abs=1)
    assert arms["switching"] == [TUNE] * at + ["2 to 1"] * (recipe.horizon - at)


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["small", "middle", "published"])
def test_the_command_runs_the_same_code_on_tiny_sizes(setting, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    for name in ("CPU", "MIDDLE", "PUBLISHED"):
        recipe = replace(getattr(benchmark, name), data=pictures)
        test = None if recipe.test is None else pictures
        monkeypatch.setattr(benchmark, name, replace(recipe, test=test))
    where = ["--results", str(tmp_path), "--checkpoints", str(tmp_path / "unfinished")]
    methods = METHODS if setting == "small" else [TUNE, "confidence 0.7"]
    once = ["--smoke", "--seeds", "1", "--processes", "1"]
    asked = [] if setting == "small" else [f"--{setting}"]
    command = ["stn", *asked, *once, "--methods", *methods, *where]
    assert main(command) == 0
    rows = rows_of("stn", tmp_path)
    assert {row["method"] for row in rows} == set(methods)
    assert {row["recipe"] for row in rows} == {f"{setting}, tiny"}
    drawn = [path.stem.rpartition("-")[2] for path in tmp_path.glob("stn-*.png")]
    assert sorted(drawn) == ["hyperparameters", "training", "validation"]
    assert "static grid" in capsys.readouterr().out
    assert not list((tmp_path / "unfinished").iterdir())
    main(command)  # what is stored is not trained again
    assert len(rows_of("stn", tmp_path)) == len(rows)


def row(method: str, seed: int, loss: float, seconds: float) -> dict:
    ends = {
        "validation_loss": loss,
        "validation_accuracy": 0.5,
        "test_loss": 1.0,
        "test_accuracy": 0.5,
    }
    paid = {"tunings": 10, "queries": 0, "query_seconds": 0.0, "tuner_seconds": 0.0}
    return {"recipe": "small", "method": method, "seed": seed, "seconds": seconds, **ends, **paid}


def test_the_grid_takes_the_best_schedule_of_each_seed_and_pays_for_all():
    arms = [TRAIN, TUNE, "2 to 1", "5 to 1", "10 to 1"]
    rows = [
        row(arm, seed, abs(place - 2 * seed), 2.0)
        for place, arm in enumerate(arms)
        for seed in (0, 1)
    ]
    grid = with_grid(rows)["static grid"]
    assert {seed: run["validation_loss"] for seed, run in grid.items()} == {0: 0, 1: 0}
    assert {run["seconds"] for run in grid.values()} == {10.0}
    line = next(line for line in text(rows).splitlines() if line.startswith("static grid"))
    assert "5.00" in line  # times dense tuning
    assert "-1.0000 (0.0000)" in line
    assert "static grid" not in with_grid([one for one in rows if one["method"] != TRAIN])


def test_a_step_is_timed_beside_the_plain_one(tmp_path, monkeypatch, capsys):
    small = {"small": replace(tiny(CPU), data=pictures)}
    monkeypatch.setattr(timing, "RECIPES", small)
    main(["stn-time", "--networks", "small", "--repeats", "1", "--results", str(tmp_path)])
    assert "self-tuning by plain" in capsys.readouterr().out
    (timed,) = rows_of("stn-time", tmp_path)
    assert min(timed[step] for step in ("plain", "self-tuning", "tuning", "validation")) > 0
    good, bad = {**timed, "plain": 1.0, "self-tuning": 1.6}, {**timed, "self-tuning": 1e9}
    assert "1.6 holds" in timing.text([good])
    assert "DOES NOT HOLD" in timing.text([bad])
