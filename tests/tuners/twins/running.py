"""A training run whose level is known, so that what a tuner makes of it can be judged."""

import math

import torch

import botorch_costly as bc

GOOD = 0.01  # learning rate at which the run is fastest
RATE = bc.SearchSpace({"lr": bc.Real(1e-5, 1.0, log=True)})


def by_rate(config):
    """Speed at a learning rate: slower on both sides of the good one, NaN far above it."""
    ratio = config["lr"] / GOOD
    return min(ratio, 1 / ratio) if ratio <= 20 else math.nan


class Run:
    """Progress by the speed of each configuration; the level grows with its logarithm.

    The noise of a loss is drawn by the state's own generator: twins meet the same noise.
    """

    def __init__(self, speed=by_rate, *, noise=0.0, slope=0.3):
        self.speed, self.noise, self.slope = speed, noise, slope
        self.progress, self.played = 0.0, []
        self.generator = torch.Generator().manual_seed(5)

    def train(self, config):
        self.progress += self.speed(config)
        self.played.append(dict(config))
        self.shock = self.noise * torch.randn((), generator=self.generator).item()

    @property
    def level(self):
        return self.slope * math.log1p(self.progress)

    def loss(self):
        return math.exp(self.shock - self.level)

    def state_dict(self):
        state = self.generator.get_state()
        return {"progress": self.progress, "played": list(self.played), "generator": state}

    def load_state_dict(self, state):
        self.progress, self.played = state["progress"], list(state["played"])
        self.generator.set_state(state["generator"])


def play(tuner, run, *, metric=None, rounds=None):
    """Play rounds, by default all that are left; return the session."""
    session = bc.Session.of(tuner, run)
    for _ in range(tuner.horizon - len(tuner.decisions) if rounds is None else rounds):
        decision = session.ask()
        run.train(decision.config)
        if decision.query:
            session.tell(decision, run.loss() if metric is None else metric(run))
    return session


def alone(config, horizon, **options):
    """A run with one configuration throughout."""
    run = Run(**options)
    for _ in range(horizon):
        run.train(config)
    return run
