"""Momentum SGD with a multiplied schedule, written out: the rate of each step is known beforehand."""

import torch
from torch import nn
from torch.optim import SGD


def schedule_of(make, steps):
    """The rates of a scheduler that meets no tuner."""
    optimizer = SGD([nn.Parameter(torch.zeros(1))], lr=0.1, momentum=0.9)
    scheduler, rates = make(optimizer), []
    for _ in range(steps):
        optimizer.step()
        rates.append(optimizer.param_groups[0]["lr"])
        scheduler.step()
    return rates


def train_by_hand(make, multipliers, steps=12):
    """The weights of a linear regression, each multiplier for three steps, and the schedule."""
    torch.manual_seed(0)
    network, data = nn.Linear(3, 1), torch.randn(steps, 5, 3)
    rates = schedule_of(make, steps)
    velocity = [torch.zeros_like(parameter) for parameter in network.parameters()]
    for step in range(steps):
        network.zero_grad()
        network(data[step]).square().mean().backward()
        with torch.no_grad():
            for parameter, v in zip(network.parameters(), velocity, strict=True):
                v.mul_(0.9).add_(parameter.grad)
                parameter.sub_(multipliers[step // 3] * rates[step] * v)
    return network.weight.detach(), rates
