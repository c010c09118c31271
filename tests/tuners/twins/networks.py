"""A small network that is trained for real, with everything that training changes."""

import random

import numpy as np
import torch
from torch import nn

import botorch_costly as bc

SPACE = bc.SearchSpace(
    {"lr": bc.Real(1e-6, 10.0, log=True), "weight_decay": bc.Real(1e-6, 1.0, log=True)}
)
START = {"lr": 1e-5, "weight_decay": 1e-2}
HORIZON = 40


class Training:
    """Network, AdamW, scheduler and generator; batches are drawn from the three global generators."""

    def __init__(self, seed=0):
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002  what users' loaders draw from
        self.network = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=1e-3)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 3, gamma=0.9)
        self.generator = torch.Generator().manual_seed(seed)

    @property
    def parts(self):
        return self.network, self.optimizer, self.scheduler, self.generator

    def batch(self):
        shift = random.random() + np.random.rand()  # noqa: NPY002
        return torch.rand(16, 4) + shift

    def train(self, config):
        for group in self.optimizer.param_groups:
            group.update(config)
        x = self.batch()
        y = x.sum(-1, keepdim=True) + 0.01 * torch.randn(16, 1, generator=self.generator)
        self.loss = (self.network(x) - y).square().mean()
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()
        self.scheduler.step()

    def everything(self):
        """Copies of all that training changes, and of the draws that come next."""
        states = [
            self.network.state_dict(),
            self.optimizer.state_dict(),
            self.scheduler.state_dict(),
        ]
        kept = torch.get_rng_state(), random.getstate(), np.random.get_state()  # noqa: NPY002
        own = self.generator.get_state()
        draws = [self.batch(), torch.randn(3, generator=self.generator), random.gauss(0, 1)]
        torch.set_rng_state(kept[0])
        random.setstate(kept[1])
        np.random.set_state(kept[2])  # noqa: NPY002
        self.generator.set_state(own)
        return flat([states, draws])


def flat(state):
    """Leaves of a state: copies of tensors, and plain values."""
    if isinstance(state, dict):
        return [leaf for key in state for leaf in [key, *flat(state[key])]]
    if isinstance(state, list | tuple):
        return [leaf for part in state for leaf in flat(part)]
    return [state.detach().clone() if isinstance(state, torch.Tensor) else state]


def equal(ours, theirs):
    """Whether leaves are equal to the last bit, NaN to NaN."""
    return len(ours) == len(theirs) and all(
        torch.equal(a.nan_to_num(), b.nan_to_num()) and torch.equal(a.isnan(), b.isnan())
        if isinstance(a, torch.Tensor)
        else a == b
        for a, b in zip(ours, theirs, strict=True)
    )


def play(session, training, rounds):
    """Train rounds of a session; return its decisions."""
    decisions = []
    for _ in range(rounds):
        decision = session.ask()
        training.train(decision.config)
        if decision.query:
            session.tell(decision, training.loss)
        decisions.append(decision)
    return decisions
