"""A process that works on a study in a journal file, and may be ended in the middle of a trial."""

import os
import sys
from pathlib import Path

import optuna
import torch
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from botorch_costly.integrations.optuna import TransferSampler

DISTRIBUTIONS = {
    "lr": optuna.distributions.FloatDistribution(1e-4, 1e-1, log=True),
    "layers": optuna.distributions.IntDistribution(1, 5),
}


def objective(trial, away=0.0):
    lr = trial.suggest_float("lr", 1e-4, 1e-1, log=True)
    layers = trial.suggest_int("layers", 1, 5)
    return abs(torch.tensor(lr).log10().item() + 2 + away) + 0.1 * abs(layers - 3)


def earlier(away=0.2, trials=15):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: objective(trial, away), n_trials=trials)
    return study


def storage(folder):
    return JournalStorage(JournalFileBackend(str(folder / "journal.log")))


def main():
    folder, seed, trials = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    killed = int(sys.argv[4]) if len(sys.argv) > 4 else None
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = TransferSampler([earlier()], distributions=DISTRIBUTIONS, seed=seed)
    study = optuna.create_study(
        study_name="target", storage=storage(folder), sampler=sampler, load_if_exists=True
    )
    mine = []

    def watched(trial):
        value = objective(trial)
        mine.append(trial.number)
        if len(mine) == killed:
            os.kill(os.getpid(), 9)
        return value

    study.optimize(watched, n_trials=trials)
    (folder / f"{seed}.txt").write_text(" ".join(map(str, mine)))


if __name__ == "__main__":
    main()
