"""SimCLR tuned within one run: runs resume, fail and recover, schedules replay, bad input is named."""

import math
from dataclasses import replace

import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.harness.record import rows_of
from benchmarks.suite.protocol import OnlineProblem, TrainingRun
from benchmarks.suite.runner import run_online
from benchmarks.training.simclr import benchmark, readouts, run as running, timing
from benchmarks.training.simclr.benchmark import coins_of, schedule_of, text
from benchmarks.training.simclr.methods import (
    COIN,
    COINS,
    EXPERT,
    METHODS,
    RULES,
    ReplayPolicy,
    policy_of,
)
from benchmarks.training.simclr.recipes import CPU, PUBLISHED, tiny
from benchmarks.training.simclr.run import ONE_OPERATION, SPACE, START, ContrastiveProblem
from botorch_costly import Schedule
from botorch_costly.errors import (
    InvalidArgumentError,
    InvalidConfigError,
    NumericalError,
    StateMismatchError,
)
from tests.benchmarks.test_online_suite import same_state
from tests.benchmarks.test_stn_schedule import KilledError, pictures
from tests.cases import quick

TOLD = ["full feedback", "confidence 0.7", "as it comes"]
EXPORTED = ["full feedback", "random schedule", "one operation"]


def problem(**changes) -> ContrastiveProblem:
    return ContrastiveProblem(replace(tiny(CPU), data=pictures, **changes))


def trained(rounds: int = 3, config=START, **changes):
    run = problem(**changes).setup(0)
    for _ in range(rounds):
        run.train_round(config)
    return run


def broken(monkeypatch, rounds):
    """Let the loss be no number in some rounds of each run."""
    good, calls = running.nt_xent, []

    def loss(*args):
        calls.append(None)
        bad = (len(calls) - 1) // tiny(CPU).steps in rounds
        return good(*args) * (math.nan if bad else 1.0)

    monkeypatch.setattr(running, "nt_xent", loss)


class TestRun:
    def test_it_is_what_the_protocol_says(self):
        assert isinstance(problem(), OnlineProblem)
        assert isinstance(problem().setup(0), TrainingRun)

    def test_it_learns_to_tell_pictures_apart(self):
        run = trained(1, EXPERT)
        first = run.loss
        for _ in range(8):
            run.train_round(EXPERT)
        assert run.loss < first
        assert run.test().accuracy > 0.5

    def test_it_trains_and_is_resumed_on_the_device_of_its_recipe(self, tkwargs, tmp_path):
        device = str(tkwargs["device"])
        run, other = trained(1, device=device), problem(device=device).setup(0)
        torch.save(run.state_dict(), tmp_path / "state")
        other.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
        for same in (run, other):
            same.train_round(START)
        assert run.test() == other.test()

    @pytest.mark.parametrize("config", [START, ONE_OPERATION])
    def test_a_resumed_run_continues_bit_for_bit(self, config, tmp_path):
        before = torch.get_rng_state()
        straight, resumed = trained(config=config), problem().setup(0)
        torch.save(straight.state_dict(), tmp_path / "state")
        resumed.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
        for run in (straight, resumed):
            run.train_round(config)
            run.validate()
        ours, theirs = ({**run.state_dict(), "seconds": []} for run in (straight, resumed))
        assert same_state(ours, theirs)
        assert torch.equal(torch.get_rng_state(), before)

    def test_querying_and_testing_change_nothing_that_trains(self):
        run, other = trained(), trained()
        assert run.validate() == run.validate()
        run.test()
        for one in (run, other):
            one.train_round(START)
        assert same_state(run.save(), other.save())

    @pytest.mark.parametrize(
        "changes", [{"precision": "bf16"}, {"channels_last": True}, {"readout": "probe"}]
    )
    def test_other_recipes_train_as_well(self, changes):
        run = trained(**changes)
        assert math.isfinite(run.loss)
        assert 0 <= run.validate().accuracy <= 1

    def test_the_layout_of_memory_changes_no_more_than_rounding(self):
        plain, last = trained(1), trained(1, channels_last=True)
        assert last.loss == pytest.approx(plain.loss, rel=1e-4)

    def test_the_rate_rises_and_falls(self):
        rates = [CPU.rate(step) for step in range(CPU.horizon * CPU.steps)]
        assert max(rates) == pytest.approx(8.0)
        assert rates[0] < 0.2
        assert rates.index(max(rates)) == pytest.approx(0.1 * len(rates), abs=1)
        assert rates[-1] < 0.001
        assert replace(CPU, batch=512, warm_up=0.0).rate(0) == pytest.approx(16.0)


class TestFailure:
    def test_a_failed_round_is_undone_and_a_failed_query(self, monkeypatch):
        broken(monkeypatch, {2})
        run = trained(2)
        before = {k: v.clone() for k, v in run.network.state_dict().items()}
        run.train_round(START)
        assert run.failed
        assert run.failures == 1
        assert same_state(before, dict(run.network.state_dict()))
        assert run.validate().loss == math.inf
        run.train_round(START)  # it goes on, with other draws
        assert not run.failed
        assert math.isfinite(run.validate().loss)

    @pytest.mark.parametrize("method", quick(TOLD, "as it comes"))
    def test_the_tuner_hears_of_it(self, method, monkeypatch):
        broken(monkeypatch, {1, 6})
        one = problem(epochs=10)
        policy = policy_of(method, one, 0)
        record = run_online(one, policy, 0, report_every=one.horizon)
        assert len(record.decisions) == one.horizon
        told = policy.policy.tuner.observations
        failed = {seen.round for seen in told if seen.failed}
        if method == "as it comes":  # to a guard with a reference it is the worst gain there is
            assert any(seen.reward == -1.0 for seen in told)
        else:
            assert failed == {1, 6}
        assert record.test_accuracy[-1][1] > 0

    def test_a_run_that_does_not_recover_stops_with_its_state_saved(self, monkeypatch, tmp_path):
        broken(monkeypatch, range(4, 100))
        one, path = problem(epochs=10), tmp_path / "checkpoint.pt"
        with pytest.raises(NumericalError, match="finite loss in one of 3 rounds"):
            run_online(one, policy_of("full feedback", one, 0), 0, checkpoint=path)
        state = torch.load(path, weights_only=True)["run"]
        assert state["counts"] == [6, 2, 2]
        assert all(weights.isfinite().all() for weights in state["network"].values())

    def test_features_that_are_not_finite_are_a_failed_query(self):
        run = trained(1)
        good = {k: v.clone() for k, v in run.network.state_dict().items()}
        with torch.no_grad():
            run.network.encoder[0].weight.fill_(math.nan)
        assert run.validate().loss == math.inf
        assert run.failed
        assert same_state(good, dict(run.network.state_dict()))


class TestBadInput:
    @pytest.mark.parametrize(
        "config", [{**START, "crop": 0.4}, {**START, "blur": 1.1}, {"crop": 0.5}, {}]
    )
    def test_probabilities_outside_their_bounds(self, config):
        run = problem().setup(0)
        with pytest.raises(InvalidConfigError):
            run.train_round(config)
        assert run.round == 0

    @pytest.mark.parametrize(
        "change",
        [
            {"batch": 1},
            {"epochs": 0},
            {"temperature": 0.0},
            {"side": 20},
            {"encoder": "resnet50"},
            {"readout": "guess"},
            {"precision": "fp8"},
            {"warm_up": 1.0},
        ],
    )
    def test_a_recipe_that_makes_no_sense(self, change):
        with pytest.raises(InvalidArgumentError, match=next(iter(change))):
            replace(CPU, **change)

    def test_fewer_validation_pictures_than_neighbours(self):
        run = trained(1, validation=2)
        with pytest.raises(InvalidArgumentError, match="more than k = 20"):
            run.validate()

    def test_fewer_pictures_than_a_batch(self):
        with pytest.raises(InvalidArgumentError, match="at most the 80"):
            problem(batch=81).setup(0)

    def test_a_state_of_another_run(self):
        state = problem().setup(0).state_dict()
        with pytest.raises(StateMismatchError, match="seed"):
            problem().setup(1).load_state_dict(state)
        with pytest.raises(StateMismatchError, match="recipe"):
            problem(name="other").setup(0).load_state_dict(state)
        with pytest.raises(StateMismatchError, match="keys"):
            problem().setup(0).load_state_dict({})

    def test_a_policy_meets_another_kind_of_run(self):
        policy = policy_of("priced", problem(), 0)
        with pytest.raises(InvalidArgumentError, match="ContrastiveProblem"):
            policy.start(object())


@pytest.mark.parametrize("method", quick(METHODS, "priced"))
def test_a_killed_run_continues_with_the_same_decisions(method, tmp_path):
    one = problem(epochs=4)
    straight = run_online(one, policy_of(method, one, 7), 7, report_every=one.horizon)

    def kill(record):
        if len(record.decisions) == 7:
            raise KilledError

    options = {"checkpoint": tmp_path / "checkpoint.pt", "report_every": one.horizon}
    with pytest.raises(KilledError):
        run_online(one, policy_of(method, one, 7), 7, after_round=kill, **options)
    resumed = run_online(one, policy_of(method, one, 7), 7, **options)
    assert [d.to_dict() for d in resumed.decisions] == [d.to_dict() for d in straight.decisions]
    assert (resumed.queries, resumed.test_accuracy) == (straight.queries, straight.test_accuracy)


@pytest.mark.parametrize("method", quick(EXPORTED, "one operation"))
def test_an_exported_schedule_is_replayed_to_the_identical_run(method, tmp_path):
    one = problem(epochs=4)
    record = run_online(one, policy_of(method, one, 3), 3, report_every=one.horizon)
    schedule_of(record).to_json(tmp_path / "schedule.json")
    policy = ReplayPolicy(Schedule.from_json(tmp_path / "schedule.json"))
    again = run_online(one, policy, 3, report_every=one.horizon)
    assert [d.config for d in again.decisions] == [d.config for d in record.decisions]
    assert again.queries == 0
    assert again.test_accuracy == record.test_accuracy


def command(tmp_path, *options: str) -> list[str]:
    where = ["--results", str(tmp_path), "--runs", str(tmp_path / "runs")]
    return ["simclr", "--smoke", "--seeds", "1", "--processes", "1", *options, *where]


FEW = ("off", "expert", "full feedback", "confidence 0.8", COIN)


@pytest.mark.slow
@pytest.mark.parametrize("methods", ["few", "all"])
def test_the_command_runs_the_same_code_on_tiny_sizes(methods, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    methods = FEW if methods == "few" else tuple(METHODS)
    monkeypatch.setattr(benchmark, "CPU", replace(CPU, data=pictures))
    assert main(command(tmp_path, "--methods", *methods)) == 0
    rows = {row["method"]: row for row in rows_of("simclr", tmp_path)}
    assert set(rows) == set(methods)
    assert {row["queries"] for name, row in rows.items() if name in ("off", "expert")} == {0}
    assert rows["full feedback"]["queries"] == rows["full feedback"]["rounds"]
    assert sorted(path.suffix for path in (tmp_path / "runs").iterdir()) == [".json"] * len(rows)
    assert len(list(tmp_path.glob("simclr-*.png"))) == 2
    assert "less full" in capsys.readouterr().out
    schedule = str(tmp_path / "runs" / "small_tiny-full_feedback-0.json")
    assert main(command(tmp_path, "--replay", schedule)) == 0
    assert f"{100 * rows['full feedback']['top_1']:.2f} %" in capsys.readouterr().out
    main(command(tmp_path, "--methods", *methods))  # what is stored is not trained again
    assert len(rows_of("simclr", tmp_path)) == len(rows)


def test_the_command_of_a_gpu_runs_on_tiny_sizes(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torchvision", reason="the extra `vision`")
    monkeypatch.setattr(benchmark, "PUBLISHED", replace(PUBLISHED, data=pictures, test=pictures))
    main(command(tmp_path, "--published", "--methods", "fixed 0.5", "confidence 0.8", COIN))
    assert {row["recipe"] for row in rows_of("simclr", tmp_path)} == {"resnet18, tiny"}


def test_the_coin_has_the_share_that_the_confidence_rule_queried():
    paid = {"queries": 46, "rounds": 100, "design": 10}
    rows = [
        {"recipe": "small", "method": "confidence 0.8", "seed": 3, **paid},
        {"recipe": "other", "method": "confidence 0.8", "seed": 4, **paid},
        {"recipe": "small", "method": "priced", "seed": 5, **paid},
    ]
    assert coins_of(rows, "small") == {(COIN, 3): 0.4}
    rows.append({"recipe": "small", "method": "confidence 0.7, accuracy", "seed": 5, **paid})
    assert coins_of(rows, "small") == {(COIN, 3): 0.4, ("coin for 0.7, accuracy", 5): 0.4}


def test_each_coin_has_a_rule_and_its_reward():
    assert set(COINS.values()) <= set(RULES)
    assert set(METHODS) >= set(COINS)
    for coin, rule in COINS.items():
        ours, theirs = (policy_of(name, problem(), 0, 0.5).policy.reward for name in (coin, rule))
        assert (ours.kind, ours.memory) == (theirs.kind, theirs.memory)
        assert ours.kind == ("accuracy" if "accuracy" in coin else "loss")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "low", "high"),
    quick([(0.0, 10, 10), (0.4, 30, 62), (None, 48, 80)], (0.4, 30, 62)),
)
def test_the_coin_falls_as_often_as_the_confidence_rule_queried(rate, low, high):
    one = problem(epochs=40)
    assert one.horizon == 100
    policy, many = policy_of(COIN, one, 0, rate), 0
    policy.start(one.setup(0))
    for _ in range(100):
        many += policy.decide().query
    assert low <= many <= high


def row(method: str, seed: int, top_1: float, queries: int) -> dict:
    paid = {"query_seconds": 1.0, "tuner_seconds": 0.1, "seconds": 10.0 + queries, "failed": 0}
    ends = {"recipe": "small", "method": method, "seed": seed, "top_1": top_1}
    return {**ends, **paid, "queries": queries, "rounds": 10}


def test_the_table_is_paired_over_seeds():
    ended = {"fixed 0.5": (0.3, 0), "full feedback": (0.4, 10), COIN: (0.38, 5)}
    rows = [
        row(method, seed, top_1 + 0.1 * seed, queries)
        for method, (top_1, queries) in ended.items()
        for seed in (0, 1)
    ]
    lines = {line.split("  ")[0]: line for line in text(rows).splitlines()[:5]}  # ours alone
    assert "+10.00 (0.00)" in lines["full feedback"]
    assert "-2.00 (0.00)" in lines[COIN]
    assert "0.50" in lines[COIN]  # of full feedback's queries
    assert "1.50" in lines[COIN]  # times fixed


@pytest.mark.slow
def test_brief_readouts_are_ranked_against_the_final_one(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(readouts, "CPU", replace(CPU, data=pictures))
    options = ["--smoke", "--seeds", "2", "--processes", "1", "--results", str(tmp_path)]
    main(["simclr-readout", *options])
    assert "probe, loss" in capsys.readouterr().out
    (first, _) = rows_of("simclr-readout", tmp_path)
    assert [at["round"] for at in first["times"]] == [3, 7, 10]
    planted = [
        {"recipe": "small", "times": [{"round": 1, "final": x, "neighbours": [x, 1 - x, 0.1],
                                       "probe": [1 - x, x, 0.1]}]}
        for x in (0.1, 0.2, 0.3)
    ]  # fmt: skip
    told = readouts.text(planted)
    assert "1.000" in next(line for line in told.splitlines() if "neighbours, loss" in line)
    assert "-1.000" in next(line for line in told.splitlines() if "probe, acc" in line)


def test_steps_are_timed_under_constant_and_changing_probabilities(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(timing, "RECIPES", {"small": replace(CPU, data=pictures)})
    main(["simclr-time", "--smoke", "--repeats", "2", "--results", str(tmp_path)])
    assert "pictures/s" in capsys.readouterr().out
    (timed,) = rows_of("simclr-time", tmp_path)
    assert min(timed[what] for what in ("constant", "changing", "views", "query", "decision")) > 0
    assert timed["graphs"] == 0
    even = {**timed, "constant": 1.0, "changing": 1.05}
    assert "DOES NOT HOLD" not in timing.text([even])
    assert "DOES NOT HOLD" in timing.text([{**even, "changing": 1.1}])
    assert "DOES NOT HOLD" in timing.text([{**even, "graphs": 1}])


@pytest.mark.slow
def test_changing_probabilities_compile_nothing_again():
    pytest.importorskip("torch._inductor")
    import shutil

    if shutil.which("g++") is None:
        pytest.skip("no compiler of C++ here")
    run = trained(1, compiled=True, steps=1)
    before = timing._graphs()
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        run.train_round(SPACE.decode(SPACE.sample(1, generator)[0]))
    assert timing._graphs() == before
