"""What runs on a local cluster of Ray: a training whose score is known, and earlier studies of it.

As a program it is the driver of a run, which may be killed and restored.
"""

import json
import math
import os
import sys
from pathlib import Path

os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # or Ray writes a token to the home folder
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

os.environ.setdefault("TUNE_GLOBAL_CHECKPOINT_S", "0.5")

import ray
from ray import tune

import botorch_costly as bc
from botorch_costly.integrations.ray import OfflineSearcher

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "layers": bc.Integer(1, 5)})
MEMBERS = bc.SearchSpace({"rate": bc.Real(0.0, 1.0)})
LONGEST = 9
EARLIER = bc.Task(
    [{"lr": 10.0**-k, "layers": n} for k in (1, 2, 3, 4) for n in (1, 3, 5)],
    [-abs(k - 2.5) - abs(n - 3) for k in (1, 2, 3, 4) for n in (1, 3, 5)],
)


def score(config, share=1.0):
    return -abs(math.log10(config["lr"]) + 2) - 0.1 * abs(config["layers"] - 3) - 0.2 / share


def trainable():
    """A training that names no module of the tests: Ray sends it whole, and workers load no PyTorch."""

    def train(config):
        if config["layers"] == 5 and config["lr"] > 0.05:
            raise ArithmeticError("diverged")
        length = config.get("epochs", 1)
        for epoch in range(1, length + 1):
            share = epoch / 9 if "epochs" in config else config.get("fraction", 1.0)
            away = abs(math.log10(config["lr"]) + 2) + 0.1 * abs(config["layers"] - 3)
            tune.report({"score": -away - 0.2 / share})

    return train


def start(cpus=4):
    if not ray.is_initialized():
        ray.init(num_cpus=cpus, include_dashboard=False, log_to_driver=False)
    return ray


# -- a driver --------------------------------------------------------------------------------------

ROUGH = bc.Sampling(draws=2, first_steps=8, steps=8, points=5, candidates=20, first=9)
KINDS = {
    "transfer": lambda: bc.TransferOptimizer(SPACE, [EARLIER]),
    "subsets": lambda: bc.SubsetOptimizer(SPACE, sampling=ROUGH),
}
TRIALS = 14


def slowly():
    """A training in steps, so that a scheduler can stop it on its way."""

    def train(config):
        import time

        away = abs(math.log10(config["lr"]) + 2) + 0.1 * abs(config["layers"] - 3)
        for step in range(1, 10):
            time.sleep(0.1)
            tune.report({"score": -away - 0.2 / config.get("fraction", 1.0) - 1 / step})

    return train


class Counting(tune.Callback):
    """Says in a file how many trials have ended."""

    def __init__(self, file):
        self._file, self._ended = file, 0

    def on_trial_complete(self, iteration, trials, trial, **info):
        self._ended += 1
        self._file.write_text(str(self._ended))


def searcher_of(kind):
    return OfflineSearcher(KINDS[kind](), metric="score", mode="max")


def member(length):
    """A training that goes on from checkpoints, and gains most at a rate of 0.3."""

    def train(config):
        import json
        import os
        import tempfile

        done, score = 0, 0.0
        checkpoint = tune.get_checkpoint()
        if checkpoint:
            with checkpoint.as_directory() as folder, open(os.path.join(folder, "state")) as file:
                done, score = json.load(file)
        while done < length:
            done, score = done + 1, score + 1 - (config["rate"] - 0.3) ** 2
            with tempfile.TemporaryDirectory() as folder:
                with open(os.path.join(folder, "state"), "w") as file:
                    json.dump([done, score], file)
                saved = tune.Checkpoint.from_directory(folder)
                tune.report({"score": score}, checkpoint=saved)

    return train


def main():
    folder, kind = Path(sys.argv[1]), sys.argv[2]
    start()
    train = slowly()
    if (folder / "run").exists():
        results = tune.Tuner.restore(str(folder / "run"), trainable=train).fit()
    else:
        limits = tune.TuneConfig(
            search_alg=searcher_of(kind),
            num_samples=TRIALS,
            max_concurrent_trials=3,
            scheduler=tune.schedulers.ASHAScheduler(
                metric="score", mode="max", max_t=9, grace_period=3, reduction_factor=3
            ),
        )
        place = tune.RunConfig(
            storage_path=str(folder),
            name="run",
            verbose=0,
            callbacks=[Counting(folder / "ended")],
        )
        results = tune.Tuner(train, tune_config=limits, run_config=place).fit()
    said = [
        {
            "config": one.config,
            "score": one.metrics["score"],
            "steps": one.metrics["training_iteration"],
        }
        for one in results
    ]
    (folder / "results.json").write_text(json.dumps(said))
    ray.shutdown()


if __name__ == "__main__":
    main()
