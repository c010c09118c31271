"""A learning rate whose trials are long: those that promise little by their cost end early."""

import math

import optuna
import optunahub

EPOCHS = 27


def objective(trial: optuna.Trial) -> float:
    """Return the last loss of a curve that falls to an end, which is best at some learning rate."""
    rate = trial.suggest_float("rate", 1e-5, 1e-1, log=True)
    end = (math.log10(rate) + 3) ** 2 / 10
    for epoch in range(EPOCHS):
        loss = end + math.exp(-epoch / 5)
        trial.report(loss, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return loss


if __name__ == "__main__":
    module = optunahub.load_module(package="pruners/cost_aware_curves")
    study = optuna.create_study(
        sampler=optuna.samplers.RandomSampler(seed=0), pruner=module.CurvePruner(EPOCHS)
    )
    study.optimize(objective, n_trials=25)
    print(study.best_trial.value, study.best_trial.params)
