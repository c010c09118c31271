"""A small run with twins for any trainer: numbers to learn, a tuner, and the states of a run by round."""

import torch
from torch import nn
from torch.utils.data import TensorDataset

import botorch_costly as bc
from tests.tuners.twins.networks import equal, flat

HORIZON, STEPS, BATCH = 40, 3, 12  # rounds, steps of a round, rows of a batch
RATE = bc.SearchSpace({"lr": bc.Real(1e-5, 1.0, log=True), "dropout": bc.Real(0.0, 0.5)})
FACTOR = bc.SearchSpace({"lr": bc.Scheduled(1e-2, 100, base="constant")})


def data():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(120, 4, generator=generator)
    return TensorDataset(x, x.sum(-1, keepdim=True))


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.ReLU(), nn.Linear(8, 1))


def loss(network, x, y):
    return (network(x) - y).square().mean()


def tuner(horizon=HORIZON, space=RATE, **options):
    start = {"lr": 1e-4, "dropout": 0.1} if space is RATE else {"lr": 1.0}
    return bc.TwinTuner(space, horizon, start=start, **options)


# Ends of a fit: its steps, the step at which it is stopped, and the error that stops it.
ENDS = {
    "max_steps": (20, None, None),
    "stopped": (120, 20, None),
    "an error": (120, 20, ZeroDivisionError()),
    "an interrupt": (120, 20, KeyboardInterrupt()),
}


class Journal:
    """The states of a run before and after each step, with its batches and its settings."""

    def __init__(self):
        self.before, self.after, self.batches, self.rates, self.dropouts = [], [], [], [], []

    def begin(self, module, optimizer, schedulers, batch):
        self.before.append(state_of(module, optimizer, schedulers))
        self.batches.append(batch.flatten().tolist())
        group = optimizer.param_groups[0]
        self.rates.append(group.get("lr_multiplier", group["lr"]))
        (dropout,) = [m.p for m in module.modules() if isinstance(m, nn.Dropout)]
        self.dropouts.append(dropout)

    def end(self, module, optimizer, schedulers):
        self.after.append(state_of(module, optimizer, schedulers))

    def check(self, decisions, steps=STEPS):
        """Check that states are restored bit for bit, with their batches; return how often."""
        kept, batches, at, restored = {}, {}, 0, 0
        for decision in decisions:
            step = decision.round * steps
            if step >= len(self.before):
                break
            state = self.after[step - 1] if step else self.before[0]
            if decision.keep is not None:
                kept[decision.keep] = state, at
            if decision.restore is not None:
                state, at = kept[decision.restore]
                restored += 1
            assert equal(self.before[step], state)
            for batch in self.batches[step : step + steps]:
                assert batches.setdefault(at, batch) == batch
                at += 1
            config = decision.config
            assert set(self.rates[step : step + steps]) == {config["lr"]}
            assert set(self.dropouts[step : step + steps]) == {config.get("dropout", 0.1)}
        return restored


def state_of(module, optimizer, schedulers):
    """Copies of all that training changes, without what a configuration sets."""
    state = optimizer.state_dict()
    groups = [
        {k: v for k, v in group.items() if "lr" not in k and "untuned" not in k}
        for group in state["param_groups"]
    ]
    counted = [[scheduler.last_epoch, scheduler.get_last_lr()] for scheduler in schedulers]
    return flat([module.state_dict(), state["state"], groups, counted])
