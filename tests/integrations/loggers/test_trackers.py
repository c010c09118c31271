"""The ten-line loggers of the page on trackers, read back with the trackers' own readers."""

import re
import sys

import pytest

from botorch_costly.integrations.loggers import Logger
from tests.integrations.launching import ROOT
from tests.integrations.loggers.playing import (
    Memory,
    cheap,
    history,
    logged,
    play,
    play_cheap,
)

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the trackers' own


def defined(name):
    """What the page's block of this name defines."""
    page = (ROOT / "docs/integrations/trackers.md").read_text(encoding="utf-8")
    (block,) = [
        block for block in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
        if f"class {name}" in block
    ]  # fmt: skip
    names = {"Logger": Logger, "mlflow": sys.modules.get("mlflow")}
    exec(compile(block, "trackers.md", "exec"), names)
    assert len(block.split(f"class {name}")[1].strip().splitlines()) <= 10
    return names[name]


def test_mlflow_reads_what_was_logged(store):
    mlflow, client = store
    memory = Memory()
    run = mlflow.start_run().info.run_id
    with logged(memory, defined("MlflowByHand")()) as tuner:
        play(tuner, 12, seconds=2.0)
    names = {name for entry in memory.entries for name in entry.numbers()}
    assert {"reward", "queries", "seconds", "tuner_ms", "config/lr", "query"} <= names
    for name in names:
        expected = [(e.round, e.numbers()[name]) for e in memory.entries if name in e.numbers()]
        assert history(client, run, name) == expected
    assert set(client.get_run(run).data.metrics) == names
    assert client.get_run(run).info.status == "FINISHED"


def test_mlflow_goes_on_in_a_run_that_is_resumed(store):
    mlflow, client = store
    kind, first = defined("MlflowByHand"), Memory()
    run = mlflow.start_run().info.run_id
    killed = cheap(first, kind())
    state = play_cheap(killed, 5).state_dict()
    play_cheap(killed, 2)
    mlflow.end_run()
    second = Memory()
    mlflow.start_run(run_id=run)
    resumed = cheap(second, kind())
    resumed.load_state_dict(state)
    play_cheap(resumed, 4).close()
    latest = dict(history(client, run, "config/lr"))  # of a step that is played again the last one
    whole = [*first.entries[:4], *second.entries]
    assert latest == {entry.round: entry.numbers()["config/lr"] for entry in whole}
    assert sorted(latest) == list(range(9))


def test_weights_and_biases_writes_offline_what_was_logged(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="needs wandb")
    monkeypatch.chdir(tmp_path)

    memory = Memory()
    run = wandb.init(mode="offline", dir=tmp_path, settings=wandb.Settings(silent=True))
    with cheap(memory, defined("WandbByHand")(run)) as tuner:
        play_cheap(tuner, 6)
    expected = {}
    for entry in memory.entries:
        expected |= {"round": entry.round, **entry.numbers()}
    try:
        assert {name: run.summary[name] for name in expected} == expected
    finally:
        run.finish()
    assert expected["reward"] == memory.entries[3].reward  # the last one that was told
    assert len(list(tmp_path.glob("wandb/offline-run-*/*.wandb"))) == 1
