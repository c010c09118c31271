"""Tune a plain training loop with a session.

A small network learns a noisy function twice, with as many steps, from a learning rate that is too small:
without a tuner, and with a session, which goes back from the settings that were worse.
"""

import torch

import botorch_costly as bc

ROUNDS, STEPS = 300, 5
DEFAULT = {"lr": 1e-3, "weight_decay": 0.01}

torch.manual_seed(0)
inputs = torch.randn(4000, 4)
targets = inputs.sin().sum(1, keepdim=True) + 0.1 * torch.randn(4000, 1)
TRAIN, VALIDATION, TEST = slice(0, 2000), slice(2000, 3000), slice(3000, 4000)


def new_training():
    torch.manual_seed(1)
    network = torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    return network, torch.optim.SGD(network.parameters(), lr=DEFAULT["lr"])


def loss_of(network, rows):
    return (network(inputs[rows]) - targets[rows]).square().mean()


def train_one_round(network, optimizer):
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(network, torch.randint(TRAIN.stop, (64,))).backward()
        optimizer.step()


def main():
    network, optimizer = new_training()
    print(f"test loss before training:  {loss_of(network, TEST):.3f}")
    bc.integrations.apply(DEFAULT, optimizer)
    for _ in range(ROUNDS):
        train_one_round(network, optimizer)
    print(f"after it, without a tuner:  {loss_of(network, TEST):.3f}")

    network, optimizer = new_training()
    space = {"lr": bc.Scheduled(1e-5, 1e-1), "weight_decay": bc.Real(0.0, 0.1)}
    session = bc.Session(bc.SearchSpace(space), ROUNDS, network, optimizer, start=DEFAULT)
    for decision in session:
        bc.integrations.apply(decision, optimizer)
        train_one_round(network, optimizer)
        if decision.query:
            session.tell(decision, loss_of(network, VALIDATION).item())
    print(f"after it, with a session:   {loss_of(network, TEST):.3f}")
    print(session.diagnose())


if __name__ == "__main__":
    main()
