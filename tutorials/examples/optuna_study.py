"""Begin a study of Optuna with the results of an earlier one.

The learning rate and the width of a small classifier were tuned on other data. The new study has six
trials, and is compared with one of as many that knows nothing.
"""

import optuna
import torch

from botorch_costly.integrations.optuna import TransferSampler

TRIALS = 6


def objective_of(seed, frequency):
    """Return the objective of a data set: the validation loss after a short training."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(1500, 4, generator=generator)
    labels = ((frequency * inputs).sin().sum(1) > 0).long()

    def objective(trial):
        lr = trial.suggest_float("lr", 1e-4, 10.0, log=True)
        width = trial.suggest_int("width", 4, 128, log=True)
        torch.manual_seed(trial.number)
        network = torch.nn.Sequential(
            torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Linear(width, 2)
        )
        optimizer = torch.optim.SGD(network.parameters(), lr=lr)
        for _ in range(5):
            for rows in torch.randperm(1000).split(50):
                optimizer.zero_grad()
                loss_of(network, rows).backward()
                optimizer.step()
        return loss_of(network, slice(1000, 1500)).item()

    def loss_of(network, rows):
        return torch.nn.functional.cross_entropy(network(inputs[rows]), labels[rows])

    return objective


def study_of(objective, sampler, trials):
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=trials)
    return study


def main():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    earlier = study_of(objective_of(0, 1.0), optuna.samplers.RandomSampler(seed=0), 20)
    print(f"earlier study, 20 trials on other data: {earlier.best_params}")
    objective = objective_of(1, 1.2)
    alone = study_of(objective, optuna.samplers.TPESampler(seed=0), TRIALS)
    print(f"best loss of {TRIALS} trials without it: {alone.best_value:.3f}")
    begun = study_of(objective, TransferSampler([earlier], seed=0), TRIALS)
    print(f"best loss of {TRIALS} trials with it:    {begun.best_value:.3f} at {begun.best_params}")


if __name__ == "__main__":
    main()
