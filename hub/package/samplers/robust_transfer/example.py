"""A learning rate and a dropout, after a study whose best learning rate was another."""

import math

import optuna
import optunahub


def objective(trial: optuna.Trial, best: float = 1e-2) -> float:
    """Return a loss that is least at some learning rate."""
    rate = trial.suggest_float("rate", 1e-5, 1e-1, log=True)
    dropout = trial.suggest_float("dropout", 0.0, 0.6)
    return (math.log10(rate) - math.log10(best)) ** 2 + (dropout - 0.2) ** 2


if __name__ == "__main__":
    earlier = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    earlier.optimize(lambda trial: objective(trial, best=5e-3), n_trials=30)

    module = optunahub.load_module(package="samplers/robust_transfer")
    study = optuna.create_study(sampler=module.TransferSampler([earlier]))
    study.optimize(objective, n_trials=10)
    print(study.best_trial.value, study.best_trial.params)
