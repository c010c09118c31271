"""A small problem for trainers: noisy pictures of ten shapes, a network with dropout, a tuner."""

import torch
from torch import nn
from torch.utils.data import Sampler, TensorDataset

import botorch_costly as bc

SPACE = bc.SearchSpace({"lr": bc.Real(1e-3, 1.0, log=True), "dropout": bc.Real(0.0, 0.6)})
DEFAULT = {"lr": 0.05, "dropout": 0.1}
BATCH = 60


def data(part):
    """Pictures of 8 x 8 pixels and their labels, which need no library that brings data."""
    generator = torch.Generator().manual_seed(0)
    shapes = torch.rand(10, 64, generator=generator)
    labels = torch.randint(10, (900,), generator=generator)
    noise = 0.4 * torch.randn(900, 64, generator=generator)
    rows = slice(0, 600) if part == "train" else slice(600, 900)
    return TensorDataset((shapes[labels] + noise)[rows].clamp(0, 1), labels[rows])


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 10))


def tuner(horizon, seed=0):
    return bc.OnlineTuner(SPACE, horizon, start=DEFAULT, design=bc.Design(rounds=3), seed=seed)


class EpochSampler(Sampler):
    """An order of its own for each epoch, the same after a resume."""

    def __init__(self, size):
        self.size, self.epoch = size, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return self.size

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.epoch)
        return iter(torch.randperm(self.size, generator=generator).tolist())


def by_hand(epochs, steps_a_round, horizon):
    """The run in a plain loop over steps: the naive twin of every trainer."""
    torch.manual_seed(1)
    model, tuned = network(), tuner(horizon)
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    reward = bc.GuardedReward.of(bc.GainReward("loss"), model, optimizer)
    train, loss_of = data("train"), nn.functional.cross_entropy
    x, y = data("val").tensors
    decisions, losses, step, config = [], [], 0, None
    sampler = EpochSampler(len(train))
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        order = torch.tensor(list(sampler))
        for rows in order.split(BATCH):
            if step % steps_a_round == 0 and step <= horizon * steps_a_round:
                if len(decisions) < horizon:
                    decisions.append(tuned.ask())
                    config = decisions[-1].config
                else:  # all rounds are played: the incumbent stays
                    config = tuned.best()
                optimizer.param_groups[0]["lr"], model[2].p = config["lr"], config["dropout"]
            model.train()
            optimizer.zero_grad()
            loss_of(model(train.tensors[0][rows]), train.tensors[1][rows]).backward()
            optimizer.step()
            step += 1
            decision = decisions[-1]
            is_due = step % steps_a_round == 0 and decision.query
            if is_due and step <= horizon * steps_a_round:
                model.eval()
                with torch.no_grad():
                    losses.append(loss_of(model(x), y).item())
                tuned.tell(decision, reward(losses[-1], decision))
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    return {
        "decisions": [decision.to_dict() for decision in decisions],
        "losses": losses,
        "weights": weights.tolist(),
        "restores": reward.restores,
        "config": dict(config),
    }
