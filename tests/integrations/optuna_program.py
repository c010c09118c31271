"""A process that works on a study in a journal file, and may be ended in the middle of a trial."""

import json
import os
import sys
from functools import partial
from pathlib import Path

import optuna
import torch
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

import botorch_costly as bc
from botorch_costly.integrations.optuna import (
    CurveSampler,
    SubsetSampler,
    TransferSampler,
    checkpoint_of,
)

DISTRIBUTIONS = {
    "lr": FloatDistribution(1e-4, 1e-1, log=True),
    "layers": IntDistribution(1, 5),
}
OF_CURVES = {**DISTRIBUTIONS, "epochs": IntDistribution(1, 9)}
OF_SUBSETS = {**DISTRIBUTIONS, "rows": IntDistribution(100, 10_000, step=100)}
ROUGH = bc.Sampling(draws=2, first_steps=8, steps=8, points=5, candidates=20, first=8)


def objective(trial, away=0.0):
    lr = trial.suggest_float("lr", 1e-4, 1e-1, log=True)
    layers = trial.suggest_int("layers", 1, 5)
    return abs(torch.tensor(lr).log10().item() + 2 + away) + 0.1 * abs(layers - 3)


def objective_of_curves(trial):
    value, epochs = objective(trial), trial.suggest_int("epochs", 1, 9)
    for epoch in range(epochs):
        trial.report(value + 1 / (1 + epoch), epoch)
    return value + 1 / epochs


def objective_with_checkpoints(folder, trial):
    """What ``objective_of_curves`` comes to, from files that say all that was done before."""
    value, epochs = objective(trial), trial.suggest_int("epochs", 1, 9)
    earlier, done = checkpoint_of(trial)
    curve = [] if earlier is None else json.loads((folder / f"{earlier}.json").read_text())
    assert len(curve) == done < epochs
    for epoch in range(done, epochs):
        curve.append(value + 1 / (1 + epoch))
        (folder / f"{trial.number}.json").write_text(json.dumps(curve))
        trial.report(curve[-1], epoch)
    assert curve == [value + 1 / (1 + epoch) for epoch in range(epochs)]  # all of one configuration
    return curve[-1]


def objective_of_subsets(trial):
    value, rows = objective(trial), trial.suggest_int("rows", 100, 10_000, step=100)
    trial.set_user_attr("joules", 0.1 * rows)
    return value + (1000 / rows) ** 0.3


def earlier(away=0.2, trials=15):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: objective(trial, away), n_trials=trials)
    return study


def storage(folder):
    return JournalStorage(JournalFileBackend(str(folder / "journal.log")))


def transfer(**options):
    return TransferSampler([earlier()], distributions=DISTRIBUTIONS, **options)


def curves(**options):
    return CurveSampler("epochs", distributions=OF_CURVES, **options)


def resumed(**options):
    return curves(resumes=True, **options)


def subsets(**options):
    options = {"sampling": ROUGH, "cost": "joules", **options}
    return SubsetSampler("rows", distributions=OF_SUBSETS, **options)


def optimizer_of(study):
    """The optimizer after all trials have been read."""
    study.sampler.best_params(study)
    return study.sampler._studied.trials._trials._optimizer


KINDS = {
    "transfer": (transfer, objective),
    "curves": (curves, objective_of_curves),
    "resumed": (resumed, objective_with_checkpoints),
    "subsets": (subsets, objective_of_subsets),
}


def main():
    folder, name, trials = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    sampler, told = KINDS[sys.argv[4]]
    told = partial(told, folder) if sampler is resumed else told
    killed = int(sys.argv[5]) if len(sys.argv) > 5 else None
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        study_name="target", storage=storage(folder), sampler=sampler(), load_if_exists=True
    )
    mine = []

    def watched(trial):
        value = told(trial)
        mine.append(trial.number)
        if len(mine) == killed:
            os.kill(os.getpid(), 9)
        return value

    study.optimize(watched, n_trials=trials)
    (folder / f"{name}.txt").write_text(" ".join(map(str, mine)))


if __name__ == "__main__":
    main()
