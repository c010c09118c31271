"""A loop over steps of an optimizer under a driver with twins, which no trainer runs."""

import copy

import torch

from botorch_costly.integrations import Rewindable, RoundLength
from botorch_costly.integrations.driver import Driver
from botorch_costly.integrations.training import Trained, TrainerOptions
from tests.integrations import twins
from tests.integrations.twins import HORIZON, STEPS, Journal


class Average:
    """A part with a state, which may fail to be copied or restored."""

    def __init__(self):
        self.value, self.fails_to_save, self.fails_to_load = 0.0, False, False

    def state_dict(self):
        if self.fails_to_save:
            raise MemoryError
        return {"value": self.value}

    def load_state_dict(self, state):
        if self.fails_to_load:
            raise ValueError("too large")
        self.value = state["value"]


class Fit:
    """A network in training under a driver with twins."""

    def __init__(self, tuner=None, state=None, *, schedules=False, parts=(), ranks=None, **options):
        self.network = twins.network()
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.1, momentum=0.9)
        self.tuner = twins.tuner() if tuner is None else tuner
        schedulers = ()
        if schedules:
            schedulers = (torch.optim.lr_scheduler.StepLR(self.optimizer, 10, 0.9),)
            options["rates"] = "multipliers"
        self.driver = Driver(self.tuner, TrainerOptions(RoundLength(steps=STEPS), **options))
        if ranks is not None:
            self.driver.connect().ranks = ranks
        rows = torch.arange(120).split(twins.BATCH)
        self.batches, self.journal = Rewindable(rows), Journal()
        if state is not None:
            self.driver.load_state_dict(state)
        parts = tuple(parts)
        self.trained = Trained(self.network, self.optimizer, schedulers, parts, (self.batches,))
        self.driver.start(self.trained)
        self.metric = None

    def train(self, steps=HORIZON * STEPS):
        x, y = twins.data().tensors
        schedulers = self.trained.schedulers
        for _ in range(steps):
            self.driver.before_step(self.optimizer)
            rows = next(self.batches)
            self.journal.begin(self.network, self.optimizer, schedulers, rows)
            self.network.train()
            self.optimizer.zero_grad()
            twins.loss(self.network, x[rows], y[rows]).backward()
            self.optimizer.step()
            for scheduler in schedulers:
                scheduler.step()
            self.journal.end(self.network, self.optimizer, schedulers)
            if self.driver.after_step():
                self.network.eval()
                with torch.no_grad():
                    value = twins.loss(self.network, x, y).item()
                self.driver.validated(value if self.metric is None else self.metric(value))
        return self

    def save(self):
        """States as a trainer's checkpoint holds them."""
        parts = (self.network, self.optimizer, *self.trained.schedulers)
        return copy.deepcopy([self.driver.state_dict(), *(part.state_dict() for part in parts)])

    @classmethod
    def from_saved(cls, saved, tuner=None, **options):
        state, *parts = copy.deepcopy(saved)
        torch.manual_seed(77)
        fit = cls(tuner, state, **options)
        for part, own in zip(
            (fit.network, fit.optimizer, *fit.trained.schedulers), parts, strict=True
        ):
            part.load_state_dict(own)
        return fit

    @property
    def weights(self):
        return [weight.tolist() for weight in self.network.parameters()]


def before_going_back(fit, times=1):
    """Train up to the end of a round after which the run goes back."""
    ahead = copy.deepcopy(fit.tuner)
    while True:
        fit.train(STEPS)
        ahead = copy.deepcopy(fit.tuner)
        with ahead.asking() as decision:
            times -= decision.restore is not None
        if times <= 0:
            return fit
