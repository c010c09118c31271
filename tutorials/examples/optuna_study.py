"""Begin a study of Optuna with the results of an earlier one.

A small classifier was tuned on other data. The new study of twelve trials is compared with one that knows
nothing, and with one that begins with the best configuration of the earlier study.
"""

import optuna
import torch

from botorch_costly.integrations.optuna import TransferSampler

HALF = 6  # of the trials of a study


def objective_of(seed, frequency):
    """Return the objective of a data set: the validation loss after a short training."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(1500, 4, generator=generator)
    labels = ((frequency * inputs).sin().sum(1) > 0).long()

    def objective(trial):
        lr = trial.suggest_float("lr", 1e-4, 10.0, log=True)
        width = trial.suggest_int("width", 4, 128, log=True)
        torch.manual_seed(trial.number)
        layers = torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Linear(width, 2)
        network = torch.nn.Sequential(*layers)
        optimizer = torch.optim.SGD(network.parameters(), lr=lr)
        for _ in range(100):
            optimizer.zero_grad()
            loss_of(network, torch.randint(1000, (50,))).backward()
            optimizer.step()
        return loss_of(network, slice(1000, 1500)).item()

    def loss_of(network, rows):
        return torch.nn.functional.cross_entropy(network(inputs[rows]), labels[rows])

    return objective


def study_of(objective, sampler, trials, first=()):
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial(dict(first))  # the sampler chooses what is missing
    study.optimize(objective, n_trials=trials)
    return study


def main():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    earlier = study_of(objective_of(0, 1.0), optuna.samplers.RandomSampler(seed=0), 20)
    tpe, transfer = optuna.samplers.TPESampler, TransferSampler([earlier], seed=0)
    rivals = {"without it": (tpe(seed=0),), "begun at its best": (tpe(seed=0), earlier.best_params)}
    for name, (sampler, *first) in {**rivals, "with all of it": (transfer,)}.items():
        study = study_of(objective_of(1, 1.2), sampler, 2 * HALF, *first)
        half = min(trial.value for trial in study.trials[:HALF])
        print(f"best loss {name}: {half:.3f} of {HALF} trials, {study.best_value:.3f} of all")


if __name__ == "__main__":
    main()
