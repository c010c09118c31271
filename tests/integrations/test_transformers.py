"""A real trainer of Transformers plays what its tuner decides, also on two ranks and after a kill."""

import json
import subprocess
import sys

import pytest

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, InvalidConfigError, StateMismatchError
from botorch_costly.integrations import RoundLength
from tests.integrations.launching import ROOT, launched

pytest.importorskip("transformers", reason="needs the extra botorch_costly[transformers]")
pytest.importorskip("accelerate", reason="needs the extra botorch_costly[transformers]")
from botorch_costly.integrations.transformers import STATE_FILE, TunerCallback
from tests.integrations import transformers_program as program

pytestmark = pytest.mark.filterwarnings("ignore")  # Transformers' own, on small machines


def replayed(evaluations, steps_a_round=3, horizon=11):
    """Decisions of a tuner that is told the metrics of a run in a plain loop: the naive twin."""
    tuner, gain = program.tuner(horizon), bc.GainReward("loss")
    metrics, decisions = dict(evaluations), []
    for _ in range(horizon):
        decision = tuner.ask()
        decisions.append(decision.to_dict())
        step = (decision.round + 1) * steps_a_round
        if decision.query:
            tuner.tell(decision, gain(metrics.pop(step), decision))
    assert metrics == {}  # nothing was evaluated without a decision
    return decisions, [[one.round, one.reward] for one in tuner.observations], tuner.best()


def test_a_trainer_plays_what_its_tuner_decides(tmp_path):
    done = program.run(tmp_path, guard=False)
    decisions, told, best = replayed(done["evaluations"])
    assert done["decisions"] == decisions
    assert done["told"] == told
    # The optimizer steps with the multiple of the scheduler's rate, which falls to 0 as ever.
    schedule = [3e-3 * (program.STEPS - step) / program.STEPS for step in range(program.STEPS)]
    configs = [decision["config"] for decision in decisions] + [best]  # after the last round
    played = [configs[step // 3]["lr"] for step in range(program.STEPS)]
    expected = [rate * multiplier for rate, multiplier in zip(schedule, played, strict=True)]
    assert done["rates"] == pytest.approx(expected)
    last = done["config"]
    assert last == best
    assert done["dropout"] == last["dropout"]
    assert done["decays"] == [last["weight_decay"], 0.0]  # biases and norms keep none


def run_in_a_process(folder, *arguments):
    command = [sys.executable, "-m", "tests.integrations.transformers_program", str(folder)]
    return subprocess.run(
        [*command, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=900
    )


def test_a_killed_run_goes_on_identically(tmp_path):
    (tmp_path / "whole").mkdir()
    whole = program.run(tmp_path / "whole", save=True)
    assert run_in_a_process(tmp_path, "run", "17").returncode == -9
    assert len(list((tmp_path / "checkpoints").glob(f"*/{STATE_FILE}"))) == 3
    done = run_in_a_process(tmp_path, "run")
    assert done.returncode == 0, done.stderr
    resumed = json.loads((tmp_path / "0.json").read_text())
    for part in ("decisions", "told", "weights", "config"):
        assert resumed[part] == whole[part]
    for file in (tmp_path / "checkpoints").glob(f"*/{STATE_FILE}"):
        file.unlink()
    with pytest.raises(StateMismatchError, match="resume_from"):
        program.run(tmp_path, save=True)


def test_two_ranks_play_one_run(tmp_path):
    first, second = launched("transformers_program.py", tmp_path, "ranks")
    for part in ("weights", "config", "rates"):
        assert first[part] == second[part]
    assert len(first["decisions"]) == 11
    assert second["decisions"] == []  # its own tuner is not asked


def test_what_does_not_fit_is_refused(tmp_path):
    with pytest.raises(InvalidArgumentError, match="multipliers"):
        program.run(tmp_path, rates="values")
    with pytest.raises(InvalidArgumentError, match="eval_accuracy"):
        program.run(tmp_path, monitor="eval_accuracy")
    space = bc.SearchSpace({"weight_decay": bc.Real(0, 0.5), "policy": bc.Choice(["a", "b"])})
    with pytest.raises(InvalidConfigError, match="policy"):
        program.run(tmp_path, tuner=bc.OnlineTuner(space, 5))


def test_rounds_are_epochs_by_default(tmp_path):
    done = program.run(tmp_path, length=RoundLength(epochs=1), guard=False)
    assert [step for step, _ in done["evaluations"]] == [26]  # 13 steps an epoch, held for two
    assert TunerCallback(program.tuner()).driver.options.length == RoundLength(epochs=1)
