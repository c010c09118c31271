"""Runs of all tuners that query within a share of the clock, which the test moves."""

import math

import botorch_costly as bc
from botorch_costly.query import AlwaysQuery
from tests.validation.clock import Clock

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "x": bc.Real(0.0, 1.0)})
START = {"lr": 0.01, "x": 0.5}
KINDS = ("online", "twins", "population")


def make(kind, horizon, overhead, clock, **options):
    """Return a tuner of a kind."""
    options = {"start": START, "overhead": overhead, "clock": clock, **options}
    if kind == "online":
        options = {"query": AlwaysQuery(), "search": bc.Search(num_restarts=2), **options}
        return bc.OnlineTuner(SPACE, horizon, **options)
    if kind == "twins":
        return bc.TwinTuner(SPACE, horizon, **options)
    return bc.PopulationTuner(SPACE, horizon, members=2, **options)


def loss_of(config, round):
    """Return a loss that falls with the rounds, the fastest near a rate of 0.01."""
    return (1 + round) ** (-0.3 / (1 + abs(math.log10(config["lr"]) + 2)))


def count_of(decision):
    """Return the number of queries of a decision."""
    return sum(getattr(decision, "queries", [decision.query]))


class Play:
    """Plays rounds of one second each, and queries of a price in seconds.

    Args:
        tuner: Tuner with the clock.
        clock: Clock that passes.
        price: Seconds of a query, of one member in a population.
        says: Whether the seconds of queries are told.
    """

    def __init__(self, tuner, clock, price, *, says=False):
        self.tuner, self.clock, self.price, self.says = tuner, clock, price, says
        self.training = self.querying = 0.0
        self.queries, self.shares, self.decisions = 0, [], []

    def round(self):
        """Play one round."""
        decision = self.tuner.ask()
        self.decisions.append(decision)
        self.train()
        if decision.query:
            self.query(decision)
        return decision

    def train(self, seconds=1.0):
        self.clock.seconds += seconds
        self.training += seconds

    def query(self, decision):
        """Pay for the queries of a decision, and tell their outcomes."""
        count = count_of(decision)
        seconds = count * self.price
        self.clock.seconds += seconds
        self.querying += seconds
        self.queries += count
        self.shares.append(self.querying / (self.querying + self.training))
        details = {"seconds": seconds} if self.says else {}
        self.tuner.tell(decision, self.outcome(decision), **details)

    def outcome(self, decision):
        """Return what is told of a decision."""
        if self.tuner.tells == "gain":
            return -loss_of(decision.config, decision.round)
        if not hasattr(decision, "configs"):
            return loss_of(decision.config, decision.trained)
        losses = [loss_of(config, decision.round) for config in decision.configs]
        asked = zip(losses, decision.queries, strict=True)
        return [loss if query else None for loss, query in asked]

    def rounds(self, number):
        """Play some rounds."""
        for _ in range(number):
            self.round()
        return self


def begun(kind, horizon, overhead, price, *, says=False, **options):
    """Return a run that has not begun."""
    clock = Clock()
    return Play(make(kind, horizon, overhead, clock, **options), clock, price, says=says)
