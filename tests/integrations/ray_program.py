"""What runs on a local cluster of Ray: a training whose score is known, and earlier studies of it."""

import math
import os

os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # or Ray writes a token to the home folder
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray
from ray import tune

import botorch_costly as bc

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "layers": bc.Integer(1, 5)})
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
